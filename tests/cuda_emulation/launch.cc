#include "tests/cuda_emulation/device_language.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/streams.h"

namespace tandem::emulation {

void launch(const void* kernel, cudaStream_t stream, unsigned blocks, unsigned threads,
            std::vector<const void*> pointers, std::function<void()> body) {
  if (entered("cudaLaunchKernel", stream->gpu) != cudaSuccess) return;
  if (blocks == 0 || threads == 0 || threads > 1024) {
    noted(cudaErrorInvalidConfiguration);
    return;
  }
  if (stream->gpu != current_gpu()) {
    noted(cudaErrorInvalidResourceHandle);
    return;
  }
  const LoadingKernel loading(stream->gpu, reinterpret_cast<std::size_t>(kernel));
  noted(issue(stream, {[=, gpu = stream->gpu, pointers = std::move(pointers), body = std::move(body)] {
                for (const void* pointer : pointers) {
                  if (const cudaError_t error = check_pointer(pointer, gpu)) return error;
                }
                run_blocks(blocks, threads, body);
                return cudaSuccess;
              }}));
}

}  // namespace tandem::emulation
