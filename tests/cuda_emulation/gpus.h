// The emulated GPUs, and what each call of the runtime begins and ends with.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <functional>
#include <set>

#include "tests/cuda_emulation/emulation.h"

namespace tandem::emulation {

inline constexpr int kMostGpus = 16;

struct Gpu {
  int ordinal = 0;
  std::atomic<cudaError_t> failure{cudaSuccess};  // stays
  std::atomic<bool> hangs{false};
};

const Machine& machine();
Gpu& gpu(int ordinal);  // lives as long as the process
bool is_gpu(int ordinal);

// Of the calling thread.
int current_gpu();
void use_gpu(int ordinal);
cudaError_t last_error();
cudaError_t take_last_error();

// For the end of a call: notes an error as the thread's last one, and returns it.
cudaError_t noted(cudaError_t error);
// For the beginning of a call: what a test wants it to fail with.
int injected(const char* call);
// The same, or how the GPU has failed. Noted.
cudaError_t entered(const char* call, int ordinal = current_gpu());

// A piece of a GPU's work, which returns how it has failed. It is left out on a GPU that has failed, unless `always`.
struct Work {
  std::function<cudaError_t()> run;
  bool always = false;
};
// On a thread of the emulation: late where the machine is to be, and not while the GPU hangs.
void perform(Gpu& gpu, const Work& work);

ncclResult_t communicators_failure();

}  // namespace tandem::emulation
