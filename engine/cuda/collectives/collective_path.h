// Decides which GPU a logical device is on and how a group executes its collectives. Needs no CUDA.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::cuda {

// Logical device i of a worker is on GPU i mod `gpus`.
int gpu_of(int logical_device, int gpus);

enum class CollectivePath : std::uint8_t { nccl, copies };

// NCCL accepts each GPU once in a communicator: where logical devices share one, collectives are copies and reducing
// kernels. `gpus` are those of the ranks, at least one.
CollectivePath path_for(std::span<const int> gpus);

// Describes the path for Timeline::settings: "NCCL on GPUs 0, 1", "copies and add kernels (4 logical devices on GPU
// 0)".
std::string path_text(std::span<const int> gpus);

}  // namespace tandem::cuda
