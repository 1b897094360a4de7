// Divides a shell script into words and operators, as bash does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A part of a word. Variables are replaced in all but `literal` parts; blanks in their values divide only bare ones.
struct ShellPiece {
  enum class Quote : std::uint8_t { bare, double_quotes, literal };
  Quote quote = Quote::bare;
  std::string text{};
};

// end: of a command, by a line's end, ; or &. case_end: ;;. expression: ((...)), without its brackets.
enum class ShellMark : std::uint8_t { word, expression, open, close, end, case_end, and_if, or_if, pipe, end_of_file };

struct ShellToken {
  ShellMark mark = ShellMark::word;
  std::vector<ShellPiece> pieces{};
  int line = 0, column = 0;
  bool begins_array = false;  // NAME=, with the ( right behind it, which is the next token

  // Returns whether it is this word, without quotes.
  bool is(std::string_view word) const;
};

struct ShellTokens {
  std::vector<ShellToken> tokens{};         // the last one is the end of the file
  std::vector<ShellToken> batch_options{};  // the words of lines that begin with #SBATCH
  std::vector<int> documents_with_flags{};  // lines where here-documents begin that have flags
};

// Throws InputError for a quoted text without an end.
ShellTokens shell_tokens(std::string_view text, const std::string& file);
// Returns the tokens of a string that is executed, such as that of eval, each at the place where the string is.
// Empty for a string with a quotation that has no end.
std::optional<std::vector<ShellToken>> tokens_at(int line, int column, std::string_view text);

}  // namespace tandem
