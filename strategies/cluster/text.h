// Small readers of text that the files of this folder share.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tandem {

// A whole number, and nothing around it.
std::optional<int> whole_number(std::string_view text);
// The parts between separators; "" is one empty part.
std::vector<std::string_view> split_text(std::string_view text, char separator);

}  // namespace tandem
