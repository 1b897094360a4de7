#include "scenarios/scenario/named_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "topologies/readers/catalog.h"

namespace tandem {

namespace fs = std::filesystem;

bool is_file_name(const std::string& text) {
  return text.find_first_of("/.") != std::string::npos;
}

std::optional<fs::path> existing_file(const YamlReader& value, const fs::path& folder) {
  const std::string name = value.text();
  if (name.empty()) return std::nullopt;  // no text, which text() has said
  const fs::path file = folder / name;
  std::error_code ignored;
  if (fs::exists(file, ignored)) return file;
  value.error(fmt::format("no such file beside this one: '{}'", name));
  return std::nullopt;
}

std::optional<fs::path> packaged_or_file(const YamlReader& value, const fs::path& folder,
                                         const PackagedFiles& packaged) {
  const std::string name = value.text(packaged.otherwise);
  if (name.empty()) return std::nullopt;
  if (is_file_name(name)) return existing_file(value, folder);
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(find_data(packaged.folder))) {
    if (entry.path().extension() == packaged.extension) known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return find_data(fs::path(packaged.folder) / (name + packaged.extension));
  }
  value.unknown_word(packaged.what, name, known);
  return std::nullopt;
}

}  // namespace tandem
