#include "engine/cuda/kernels/device_types.cuh"
#include "tests/gpu/spin.h"

namespace tandem {
namespace {

__global__ void spin(const volatile int* stop) {
  while (*stop == 0) {
  }
}

}  // namespace

void launch_spin(cudaStream_t stream, const int* stop) {
  cuda::start(spin, 1, 1, stream, stop);
}

}  // namespace tandem
