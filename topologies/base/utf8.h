// What is text in UTF-8, and what is not.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem {

// Returns the length in bytes of the UTF-8 character at the beginning of the text; 0 if there is none.
std::size_t utf8_size(std::string_view text);

// Returns the offset of the first byte that begins no character, or npos.
std::size_t first_not_utf8(std::string_view text);

}  // namespace tandem
