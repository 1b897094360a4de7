#include "reports/nccl_tests/nccl_tests_line.h"

#include <algorithm>
#include <array>

namespace tandem::nccl_tests {
namespace {

void blank(std::string& text, std::size_t begin, std::size_t count) {
  std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(begin), std::min(count, text.size() - begin), ' ');
}

void blank_colours(std::string& text) {
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b', at)) {
    std::size_t end = at + 1;
    if (end < text.size() && text[end] == '[') {
      ++end;
      while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    }
    blank(text, at, end + 1 - at);
  }
}

// Not before a word, where a launcher or a program may have written the mark.
void blank_quotation(std::string& text) {
  std::size_t at = text.find_first_not_of(" \t");
  while (at != std::string::npos && text[at] == '>') {
    text[at] = ' ';
    at = text.find_first_not_of(" \t", at);
  }
  if (at != std::string::npos && text[at] == '|') std::replace(text.begin(), text.end(), '|', ' ');
}

constexpr std::string_view kUnbreakableBlank = "\xc2\xa0";

}  // namespace

std::string plain_line(std::string_view line) {
  std::string text(line);
  blank_colours(text);
  for (std::size_t at = text.find(kUnbreakableBlank); at != std::string::npos; at = text.find(kUnbreakableBlank, at)) {
    blank(text, at, kUnbreakableBlank.size());
  }
  blank_quotation(text);
  return text;
}

bool is_ellipsis(const std::vector<Word>& words) {
  static constexpr std::array<std::string_view, 11> kBeginnings = {
      "...",          "[...",  "(...",  "<...",   "\xe2\x80\xa6", "[\xe2\x80\xa6",
      "\xe2\x8b\xae", "<snip", "[snip", "--snip", "(snip"};
  for (const Word& word : words) {
    const bool is_prefix = word.text == "#" || word.text.ends_with(':') || word.text.ends_with("<stdout>:#");
    if (is_prefix && &word != &words.back()) continue;
    const std::string_view text = word.text.starts_with('#') ? word.text.substr(1) : after_colon(word.text);
    return text == ".." || std::any_of(kBeginnings.begin(), kBeginnings.end(),
                                       [&](std::string_view begin) { return text.starts_with(begin); });
  }
  return false;
}

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

bool is_part_of_heading(const std::vector<Word>& words) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "#", "count", "type", "redop", "root", "time", "algbw", "busbw", "error", "#wrong", "cputime", "timestamp"};
  const bool has_figure = std::any_of(words.begin(), words.end(),
                                      [](const Word& word) { return word.text == "algbw" || word.text == "busbw"; });
  return has_figure && std::all_of(words.begin(), words.end(), [](const Word& word) {
           return std::find(kNames.begin(), kNames.end(), word.text) != kNames.end();
         });
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
