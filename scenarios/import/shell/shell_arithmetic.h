// Evaluates the arithmetic of shells: whole numbers, names of variables, + - * / % ** < <= > >= == != && || !,
// ? : and brackets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// Returns the text of a variable; nothing if it has none.
using ShellVariable = std::function<std::optional<std::string>(const std::string& name)>;

// Returns nothing for what is no such expression, has a variable without a value, divides by 0 or exceeds 2^53.
std::optional<long long> shell_arithmetic(std::string_view expression, const ShellVariable& variable);

}  // namespace tandem
