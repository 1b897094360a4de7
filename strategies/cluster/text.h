// Small text parsers for the files of this folder.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tandem {

// Parses a whole number with nothing around it.
std::optional<int> whole_number(std::string_view text);
// Splits at every separator; "" is one empty part.
std::vector<std::string_view> split_text(std::string_view text, char separator);

}  // namespace tandem
