// Every file of broken/ begins with what reading it must report: "# expect: line:column: path: message", or the
// same in an XML comment. All of a file's problems, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

const std::filesystem::path kFolder = TANDEM_SOURCE_DIR "/tests/topologies/broken";

std::vector<std::string> file_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> expected_in(const std::string& text) {
  std::vector<std::string> expected;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t mark = line.find("expect: ");
    if (mark != 2 && mark != 5) break;
    line.erase(0, mark + 8);
    if (line.ends_with(" -->")) line.resize(line.size() - 4);
    expected.push_back(std::move(line));
  }
  return expected;
}

class BrokenFile : public testing::TestWithParam<std::string> {};

TEST_P(BrokenFile, ReportsExactlyWhatIsWrong) {
  const std::filesystem::path path = kFolder / GetParam();
  const auto expected = expected_in(read_input_file(path));
  ASSERT_FALSE(expected.empty()) << "the file does not say what to expect";
  std::vector<std::string> reported;
  try {
    read_topology(path);
  } catch (const InputError& error) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      if (diagnostic.file != path.string()) {  // one that it names
        EXPECT_EQ(std::filesystem::path(diagnostic.file).parent_path(), kFolder);
      }
      diagnostic.file.clear();
      reported.push_back(diagnostic.text());
    }
  }
  EXPECT_EQ(reported, expected);
}

INSTANTIATE_TEST_SUITE_P(Topologies, BrokenFile, testing::ValuesIn(file_names()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace tandem
