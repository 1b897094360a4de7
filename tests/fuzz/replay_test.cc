// The corpus, read again by every target: what libFuzzer found once stays found, with any compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.h"
#include "topologies/base/error.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kSources = TANDEM_SOURCE_DIR;

std::vector<fs::path> files_in(const fs::path& place) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(place)) files.push_back(place);
  if (!fs::is_directory(place)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Whether a reader accepts a file; the test fails where it does neither that nor refuses it.
bool is_read(const Target& target, const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  try {
    target.read(bytes);
    return true;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "") << file;
  }
  return false;
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, IsReadOrRefused) {
  std::vector<fs::path> files = files_in(kSources / "tests/fuzz/corpus" / GetParam().name);
  EXPECT_FALSE(files.empty()) << "the target has no corpus";
  for (const char* seed : GetParam().seeds) {
    const std::vector<fs::path> more = files_in(kSources / seed);
    EXPECT_FALSE(more.empty()) << seed;
    files.insert(files.end(), more.begin(), more.end());
  }
  const auto read =
      std::count_if(files.begin(), files.end(), [](const fs::path& file) { return is_read(GetParam(), file); });
  EXPECT_GT(read, 0) << "nothing that this target reads";
  EXPECT_LT(read, static_cast<std::ptrdiff_t>(files.size())) << "nothing that this target refuses";
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace tandem::fuzz
