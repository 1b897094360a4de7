// What has been allocated on the emulated GPUs, and pinned: all of it ordinary memory of this process.
//
// New and freed memory is filled with kRubbish, freed memory is kept from reuse for a while, and the bytes around a
// block are looked at when it is freed. Threads: any.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace tandem::emulation {

inline constexpr int kHost = -1;
inline constexpr unsigned char kRubbish = 0xEE;

// Null when the GPU has no room. Pinned host memory is on kHost.
void* allocate(int gpu, std::size_t size_bytes);
// From now on touching it is an error; false when there is no such block.
bool release(void* block);

// Where a block is that has that byte; kNowhere: in none.
inline constexpr int kNowhere = -2;
int place_of(const void* at);

// Whether work on that GPU may touch those bytes: cudaErrorIllegalAddress unless they are of a block in use, on the
// host or a GPU that has let this one in.
cudaError_t check_access(const void* at, std::size_t size_bytes, int from_gpu);
// Whether a copy may, which needs no access of its own; bytes in none of the blocks are pageable host memory.
cudaError_t check_copy(const void* at, std::size_t size_bytes);
// A kernel's parameters are not known by type: only what points into a block, whichever it is, is looked at.
cudaError_t check_pointer(const void* at, int from_gpu);

void let_in(int owner, int peer, bool may);
// What is in use takes no room any more.
void count_memory_anew();

}  // namespace tandem::emulation
