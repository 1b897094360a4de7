// Kernels that make the work between them take longer, on purpose.
#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {
namespace {

// The GPU's clock, in nanoseconds. Its resolution is up to a microsecond.
__device__ unsigned long long now_ns() {
#ifdef __CUDACC__
  unsigned long long ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#else
  return tandem::emulation::global_timer_ns();
#endif
}

__global__ void note_time(unsigned long long* at) {
  *at = now_ns();
}

__global__ void hold_back(const unsigned long long* noted, double factor) {
  const unsigned long long start = *noted, taken = now_ns() - start;
  const auto end = start + static_cast<unsigned long long>(static_cast<double>(taken) * factor);
  while (now_ns() < end) {
  }
}

}  // namespace

void launch_note_time(cudaStream_t stream, void* at) {
  start(note_time, 1, 1, stream, static_cast<unsigned long long*>(at));
}

void launch_hold_back(cudaStream_t stream, const void* noted, double factor) {
  start(hold_back, 1, 1, stream, static_cast<const unsigned long long*>(noted), factor);
}

}  // namespace tandem::cuda
