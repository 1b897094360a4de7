// One block of a kernel: its threads take turns on the host thread that runs it, changing only where they wait for each
// other. In which order they take turns is not always the same.
#pragma once

#include <functional>

namespace tandem::emulation {

// Runs body() once for every thread of every block, with threadIdx and the rest set for it.
void run_blocks(unsigned blocks, unsigned threads, const std::function<void()>& body);

// What kernels call while they run.
void synchronize_block();
void synchronize_warp();
// Of the thread whose number in its warp differs by `mask`. At most 8 bytes.
unsigned long long exchange(unsigned long long mine, unsigned mask);

}  // namespace tandem::emulation
