// The variables of a shell script, and the words that come of them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/shell/shell_words.h"

namespace tandem {

// A word after expansion. Nothing but the script itself gives values: a variable that it does not set is empty, as for
// bash, and what a program would print is unknown.
struct ShellWord {
  std::string text{};
  std::string shown{};      // the text with the names of variables that are not set, and commands, in their places
  bool is_unknown = false;  // a part is what a program would print
  bool is_quoted = false;
  int line = 0, column = 0;

  bool is_complete() const { return !is_unknown && text == shown; }
};

class ShellValues {
 public:
  explicit ShellValues(std::string file) : file_(std::move(file)) {}

  // Each sets a variable. Throws InputError if all variables together become larger than 1 MiB.
  void set(const std::string& name, std::vector<ShellWord> words, int line, int column);
  void append(const std::string& name, std::vector<ShellWord> words, bool as_array, int line, int column);
  const std::vector<ShellWord>* find(const std::string& name) const;
  const std::map<std::string, std::vector<ShellWord>>& all() const { return values_; }

  std::vector<ShellWord> fields(const ShellToken& token) const;  // divided at blanks, as bash does
  ShellWord whole(const ShellToken& token) const;                // not divided
  // Returns the value of an arithmetic expression; nothing if a part has no value.
  std::optional<long long> arithmetic(std::string_view expression) const;

 private:
  friend class ShellExpansion;
  // `before`: bytes that the words replace.
  void hold(std::size_t before, const std::vector<ShellWord>& words, int line, int column);
  [[noreturn]] void fail_size(int line, int column) const;

  std::string file_;
  std::map<std::string, std::vector<ShellWord>> values_;
  std::size_t held_ = 0;  // bytes
};

bool is_shell_name(std::string_view text);

// Returns whether a text matches a pattern of the shell. Long texts and patterns with many stars, which no script needs
// and which take long, do not.
bool matches_shell_glob(const std::string& text, const std::string& pattern);

}  // namespace tandem
