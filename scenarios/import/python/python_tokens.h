// The words of Python text, by logical lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct PythonToken {
  enum class Kind { name, number, text, mark };
  Kind kind = Kind::mark;
  std::string text;  // of a text: its characters, without quotes
  int line = 0, column = 0;
};

// A statement, or the beginning of a compound one up to its colon. Its column is the indentation.
struct PythonLine {
  std::vector<PythonToken> tokens{};
};

// Throws InputError for brackets and texts that do not end.
std::vector<PythonLine> python_lines(std::string_view text, const std::string& file);

}  // namespace tandem
