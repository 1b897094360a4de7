// Divides a line of nccl-tests' text into words, and finds the columns that a heading announces. For
// reports/nccl_tests/nccl_tests_reader.cc.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::nccl_tests {

struct Word {
  std::string_view text{};
  int column = 0;
};

// Blanks what is not part of a line's text, so that its columns stay: sequences that colour a terminal, marks of a
// quotation (>) and of a table (|) in Markdown, and blanks that do not break.
std::string plain_line(std::string_view line);

// Returns whether a line marks others that someone left out: "...", "# ...", "[...]", "<snip>", "... 12 more
// rows".
bool is_ellipsis(const std::vector<Word>& words);

// Divides a line at blanks. Leaves out what `tandem collectives` adds to a row after a '|'.
std::vector<Word> split(std::string_view line);

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Returns the word that follows a word; nothing where there is none.
inline const Word* word_after(const std::vector<Word>& words, std::string_view word) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == word) return &words[i + 1];
  }
  return nullptr;
}

// Returns the number that follows a word.
template <typename Number>
std::optional<Number> number_after(const std::vector<Word>& words, std::string_view word) {
  const Word* const next = word_after(words, word);
  return next == nullptr ? std::nullopt : number_in<Number>(next->text);
}

std::string_view after_colon(std::string_view word);  // "8" of "[1,0]<stdout>:8"

// The columns of a table, by its heading; without a heading, those of today's nccl-tests.
struct Columns {
  bool redop = true;
  bool root = true;
  int groups = 2;            // out of place, in place
  int figures = 4;           // columns of a group: time, algbw, busbw, #wrong, and those for iterations
  bool counts_wrong = true;  // the last one counts wrong elements; in older versions it is the largest error
  bool timestamps = false;   // two words at the end
  bool is_heading = false;   // read from one

  std::size_t words() const {
    return 3 + (redop ? 1U : 0U) + (root ? 1U : 0U) +
           static_cast<std::size_t>(groups) * static_cast<std::size_t>(figures);
  }
};

bool is_heading(const std::vector<Word>& words);
bool is_part_of_heading(const std::vector<Word>& words);  // nothing but names of columns
Columns columns_of(const std::vector<Word>& heading);

}  // namespace tandem::nccl_tests
