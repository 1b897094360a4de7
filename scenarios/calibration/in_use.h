// What rates by the memory in use are measured with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tandem::calibration {

// A block is a variable, its momentum, its gradient, and the gradient packed, all of f32.
inline constexpr std::int64_t kInUseRows = 512, kInUseColumns = 256;
inline constexpr std::int64_t kInUseTensorBytes = 4 * kInUseRows * kInUseColumns;
inline constexpr std::int64_t kInUseBlockBytes = 4 * kInUseTensorBytes;
// The examples of a replica's batch, and what a product of theirs with a variable reads, a copy of which it keeps
// beside them.
inline constexpr std::int64_t kInUseExamples = 64;
inline constexpr std::int64_t kInUseOperandBytes = 4 * kInUseRows * (kInUseExamples + kInUseColumns);
// What an op reads and writes.
inline constexpr std::int64_t kInUseCopyBytes = 2 * kInUseTensorBytes, kInUseUpdateBytes = 3 * kInUseTensorBytes;

// The memory of a small training, at which the pace is measured, too.
inline constexpr std::int64_t kUsualInUseBytes = std::int64_t{20} << 20;

// What ops of a round do: products with the variables and for the gradients, and what follows them.
inline constexpr std::array<std::string_view, 2> kInUseProducts = {"forward", "backward"};
inline constexpr std::array<std::string_view, 3> kInUseWork = {"packing", "unpacking", "updating"};

// Whether so much memory is enough for a block on each device.
bool is_in_use_measured(std::int64_t in_use_bytes, std::size_t devices);

}  // namespace tandem::calibration
