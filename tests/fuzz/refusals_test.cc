// What a reader refuses has a place in the file, whatever is wrong with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/targets.h"
#include "topologies/base/error.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = TANDEM_SOURCE_DIR;
constexpr std::size_t kLargest = 64 * 1024;  // of the files that are broken
constexpr int kBrokenFiles = 300;            // of each target

std::vector<std::string> texts_in(const fs::path& place) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(place)) files.push_back(place);
  if (fs::is_directory(place)) {
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    if (fs::file_size(file) > kLargest) continue;
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Nothing is in an empty file, and a file that is too large is not looked at.
bool is_about_the_file(const Diagnostic& problem) {
  return problem.message == "the file is empty" || problem.message.starts_with("larger than");
}

class Refusals : public testing::TestWithParam<Target> {};

TEST_P(Refusals, NameAPlace) {
  std::vector<std::string> texts = texts_in(kTree / "tests/fuzz/corpus" / GetParam().name);
  for (const char* seed : GetParam().seeds) {
    for (std::string& text : texts_in(kTree / seed)) texts.push_back(std::move(text));
  }
  ASSERT_FALSE(texts.empty());
  Damage damage(2026);
  int refused = 0;
  for (int i = 0; i < kBrokenFiles; ++i) {
    const std::string broken = damage.of(texts[static_cast<std::size_t>(i) % texts.size()]);
    try {
      GetParam().read(broken);
    } catch (const InputError& error) {
      ++refused;
      for (const Diagnostic& problem : error.diagnostics()) {
        const bool has_place = problem.line > 0 || problem.byte >= 0;
        EXPECT_TRUE(has_place || is_about_the_file(problem)) << problem.text() << "\n--- in\n"
                                                             << broken.substr(0, 2000);
      }
    } catch (const Error&) {
      // Refused for what the file asks for, not for what it says.
    }
  }
  EXPECT_GT(refused, 0);
}

// Those that only read: a run of what was read may find that its machine cannot do it, which no line says.
std::vector<Target> readers() {
  std::vector<Target> found;
  for (const Target& target : targets()) {
    if (!std::string_view(target.name).starts_with("run_")) found.push_back(target);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Refusals, testing::ValuesIn(readers()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace tandem::fuzz
