// The broken scenarios of this folder: each begins with what reading it must report,
//   # expect: line:column: path: message
// all of a file's problems in order and nothing else. Problems of a file that it names begin with that file's name. A
// line "# schema: ..." follows where the JSON Schema has no way to see the mistake.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"

namespace tandem {

inline std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::filesystem::path> broken_scenarios() {
  return yaml_files(TANDEM_SOURCE_DIR "/tests/scenarios/broken");
}

inline std::vector<std::filesystem::path> example_scenarios() {
  return yaml_files(TANDEM_SOURCE_DIR "/scenarios/examples");
}

// What follows `mark` in the comments at the top of a file, a line each.
inline std::vector<std::string> header_lines(const std::string& text, const std::string& mark) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size() && text[begin] == '#';) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("# " + mark + ": ")) lines.push_back(line.substr(mark.size() + 4));
    begin = end + 1;
  }
  return lines;
}

// A test's name from a file's.
inline std::string test_name(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
}

}  // namespace tandem
