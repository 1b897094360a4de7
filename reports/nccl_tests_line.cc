#include "reports/nccl_tests_line.h"

#include <algorithm>

namespace tandem::nccl_tests {

std::vector<Word> split(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t", i);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    if (line.substr(begin, end - begin) == "|" && words.size() > 8) break;  // what `tandem collectives` adds to a row
    words.push_back({line.substr(begin, end - begin), static_cast<int>(begin) + 1});
    i = end;
  }
  return words;
}

std::string_view after_colon(std::string_view word) {  // "[1,0]<stdout>:8"
  const auto colon = word.rfind(':');
  return colon == std::string_view::npos ? word : word.substr(colon + 1);
}

bool is_heading(const std::vector<Word>& words) {
  const auto has = [&](std::string_view text) {
    return std::any_of(words.begin(), words.end(), [&](const Word& word) { return word.text == text; });
  };
  return has("size") && has("count") && has("type") && has("busbw");
}

Columns columns_of(const std::vector<Word>& heading) {
  Columns columns{.redop = false, .root = false, .groups = 0, .figures = 0, .counts_wrong = false, .is_heading = true};
  int figures = 0;
  for (const Word& word : heading) {
    columns.redop |= word.text == "redop";
    columns.root |= word.text == "root";
    columns.counts_wrong |= word.text == "#wrong";
    columns.timestamps |= word.text == "timestamp";
    if (word.text == "time" || word.text == "cputime") {
      ++columns.groups;
      figures = 0;
    }
    if (word.text != "timestamp") ++figures;
  }
  columns.figures = figures;
  return columns;
}

}  // namespace tandem::nccl_tests
