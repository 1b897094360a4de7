// Reads configurations that are written as Python: calls with keyword arguments and literal values, in functions that
// return them. Nothing is executed. What is no literal is kept as such, with its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct PythonArgument;

struct PythonValue {
  enum class Kind { none, boolean, whole, real, text, list, call, unread };
  Kind kind = Kind::unread;
  std::string text{};  // of a literal: "True", "3e-4", the characters of a text; of a call: "Trainer.Config"
  std::vector<PythonValue> items{};       // of a list or tuple; positional arguments of a call
  std::vector<PythonArgument> arguments;  // of a call, by keyword, in their order
  int line = 0, column = 0;

  const PythonValue* find(std::string_view keyword) const;
};
struct PythonArgument {
  std::string name;
  PythonValue value;
};

struct PythonConfig {
  std::string name;                    // of the function, or of the variable
  PythonValue value;                   // a call whose callee ends in Config
  std::vector<std::string> skipped{};  // statements that are not understood: "12:5: for"
};

// Reads the configuration with this name; with an empty one the only one. Throws InputError for text that is no Python
// of this kind, and where the name is missing or unknown.
PythonConfig read_python_config(std::string_view text, const std::string& file, const std::string& name);

}  // namespace tandem
