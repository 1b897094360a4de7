// The sizes of a sweep, as nccl-tests' options -b, -e, -i and -f say them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem {

// Parses "8", "128M", "1.5G", "64KiB": K, M and G are powers of 1024, as in nccl-tests. Returns nothing for anything
// else.
std::optional<std::int64_t> parse_sweep_size(std::string_view text);

inline constexpr std::size_t kMostSizes = 10'000;  // of a sweep

// Returns least, least * factor, ... up to most; with a factor of 1 or less, least, least + step_bytes, ... Returns
// only the first kMostSizes + 1.
std::vector<std::int64_t> sweep_sizes(std::int64_t least, std::int64_t most, std::int64_t step_bytes, double factor);

}  // namespace tandem
