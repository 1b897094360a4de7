// Broken input files. Beside NAME.txt or NAME.json, NAME.expect has what reading it must report: a line for each
// problem, "line:column: path: message", in order and nothing else.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"

namespace tandem {

inline std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".expect") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string corpus_name(const testing::TestParamInfo<std::filesystem::path>& file) {
  return file.param.stem().string();
}

using CorpusReader = std::function<void(const std::string& text, const std::string& file)>;

inline void expect_problems(const std::filesystem::path& path, const CorpusReader& read) {
  std::vector<std::string> reported;
  try {
    read(read_input_file(path), path.string());
  } catch (const InputError& error) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      EXPECT_EQ(diagnostic.file, path.string());
      diagnostic.file = "";
      reported.push_back(diagnostic.text());
    }
  }
  std::vector<std::string> expected;
  std::ifstream in(std::filesystem::path(path).replace_extension(".expect"));
  for (std::string line; std::getline(in, line);) expected.push_back(line);
  ASSERT_FALSE(expected.empty()) << path << " has no .expect file beside it";
  EXPECT_EQ(reported, expected);
}

}  // namespace tandem
