// The MD5 digest, for placements that must agree with those of other programs; not for security. An own one,
// because Boost's, which stands in a namespace of details, orders the bytes otherwise from version to version.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tandem {

std::array<std::uint8_t, 16> md5(std::string_view text);

}  // namespace tandem
