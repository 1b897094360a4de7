// The MD5 digest, for placements that must agree with those of other programs; not for security. Boost's is in a
// namespace for details and changes its byte order from version to version.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tandem {

std::array<std::uint8_t, 16> md5(std::string_view text);

}  // namespace tandem
