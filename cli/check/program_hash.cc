#include "cli/check/program_hash.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "scenarios/scenario/fnv1a.h"

namespace tandem {
namespace {

int note_library(dl_phdr_info* info, std::size_t, void* files) {
  const std::string file = info->dlpi_name;
  // The program's own entry has an empty name, and the kernel's shared object has no file.
  if (file.find('/') != std::string::npos) static_cast<std::vector<std::string>*>(files)->push_back(file);
  return 0;
}

bool add_file(Fnv1a& hash, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, 1 << 16> part{};
  while (in) {
    in.read(part.data(), part.size());
    hash.add_part({part.data(), static_cast<std::size_t>(in.gcount())});
  }
  hash.end_text();
  return in.eof();
}

}  // namespace

std::string program_hash() {
  std::vector<std::string> files;
  dl_iterate_phdr(note_library, &files);
  std::sort(files.begin(), files.end());
  files.emplace_back("/proc/self/exe");
  Fnv1a hash;
  for (const std::string& file : files) {
    if (!add_file(hash, file)) return "";
  }
  return hash.text();
}

}  // namespace tandem
