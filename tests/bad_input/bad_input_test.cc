// Every reader, given what nobody should give it: cases.txt has the command lines, and under each, indented, all that
// tandem says on stderr. It ends with exit code 3, prints no result, and stays within bounds of time and memory
// (child.cc). Files are those of files/, and those that made_files.cc makes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/bad_input/child.h"
#include "tests/bad_input/made_files.h"

namespace tandem::bad_input {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = TANDEM_SOURCE_DIR "/tests/bad_input";
constexpr std::size_t kMostBytes = std::size_t{512} << 20;
constexpr int kExitCode = 3;
const std::string kMade = "made/", kGrowing = "made/grows";
constexpr int kMostTries = 20;

struct Case {
  std::string command;
  std::string says{};
  int line = 0;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream in(kCorpus / "cases.txt");
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("  ")) {
      all.back().says += line.substr(2) + "\n";
    } else {
      all.push_back({.command = line, .line = number});
    }
  }
  return all;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream in(command);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string without(std::string text, const std::string& part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
  return text;
}

class BadInput : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("tandem-bad-input-" + std::to_string(getpid()) + "-" + std::to_string(GetParam().line));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "made");
    for (const auto& entry : fs::directory_iterator(kCorpus / "files")) {
      fs::create_directory_symlink(entry.path(), folder_ / entry.path().filename());
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

// Runs the command with its made files, of which one may grow meanwhile.
ChildResult run_with_made_files(const std::vector<std::string>& words, const fs::path& folder) {
  std::optional<GrowingFile> growing;
  for (const std::string& word : words) {
    if (!word.starts_with(kMade)) continue;
    EXPECT_TRUE(make_file(word.substr(kMade.size()), folder / "made")) << "nobody makes " << word;
    if (word == kGrowing) growing.emplace(folder / word);
  }
  return run_tandem(words, folder);
}

TEST_P(BadInput, IsRefusedWithOneMessage) {
  const std::vector<std::string> words = words_of(GetParam().command);
  ChildResult result = run_with_made_files(words, folder_);
  // On a busy machine a file's writer may get no turn while it is read: one of a few tries must show that it grows.
  const bool is_growing = std::find(words.begin(), words.end(), kGrowing) != words.end();
  for (int tries = 1; is_growing && tries < kMostTries && result.err.find("grows while") == result.err.npos; ++tries) {
    result = run_with_made_files(words, folder_);
  }
  EXPECT_EQ(result.exit_code, kExitCode) << "signal " << result.signal;
  EXPECT_EQ(without(result.err, folder_.string() + "/"), GetParam().says);
  EXPECT_EQ(result.out, "");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(result.peak_bytes, kMostBytes);
#endif
}

std::string name_of_case(const testing::TestParamInfo<Case>& instance) {
  std::string name = instance.param.command;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, BadInput, testing::ValuesIn(cases()), name_of_case);

// Every committed file is used: by a case, or by a file that a case reads.
TEST(BadInputCorpus, HasNoFileThatNobodyReads) {
  std::ifstream in(kCorpus / "cases.txt");
  std::string known((std::istreambuf_iterator<char>(in)), {});
  for (const auto& entry : fs::recursive_directory_iterator(kCorpus / "files")) {
    if (!entry.is_regular_file() || entry.path().extension() != ".yaml") continue;
    std::ifstream text(entry.path());
    known += std::string((std::istreambuf_iterator<char>(text)), {});
  }
  for (const auto& entry : fs::recursive_directory_iterator(kCorpus / "files")) {
    if (!entry.is_regular_file()) continue;
    const bool is_named = known.find(entry.path().filename().string()) != std::string::npos ||
                          known.find(entry.path().parent_path().filename().string() + "\n") != std::string::npos;
    EXPECT_TRUE(is_named) << entry.path();
  }
}

}  // namespace
}  // namespace tandem::bad_input
