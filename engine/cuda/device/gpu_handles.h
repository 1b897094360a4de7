// What a GPU's users borrow from it: streams, cuBLAS handles and fault words.
//
// Making one may wait for the GPU, so some are made when the GPU is opened, more are made in a LaunchTurn, and all are
// kept for reuse. None is freed on a GPU that hangs, because that would wait for it.
//
// Threads: any.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cuda/kernels/kernels.h"

namespace tandem::cuda {

// Remembers which GPUs of an engine hang. Shared by whatever must not wait for them.
class Hangs {
 public:
  explicit Hangs(int gpus) : hangs_(static_cast<std::size_t>(gpus)) {}
  void note(int gpu) { hangs_[static_cast<std::size_t>(gpu)] = true; }
  bool is_hanging(int gpu) const { return hangs_[static_cast<std::size_t>(gpu)]; }
  bool any() const;

 private:
  std::vector<std::atomic<bool>> hangs_;
};

// What a stream is for. Messages to other GPUs take precedence over computation, because other GPUs wait for them.
enum class StreamUse : std::uint8_t { computation, communication };

class GpuHandles {
 public:
  // Makes what most programs use. Throws RunError.
  GpuHandles(int gpu, std::shared_ptr<const Hangs> hangs);
  ~GpuHandles();
  GpuHandles(const GpuHandles&) = delete;
  GpuHandles& operator=(const GpuHandles&) = delete;

  // Each belongs to the caller until it is given back, with no work of it under way. These throw RunError.
  cudaStream_t take_stream(StreamUse use);
  cublasHandle_t take_blas();
  Fault* take_fault();
  void give_back(cudaStream_t stream, StreamUse use);
  void give_back(cublasHandle_t blas);
  void give_back(Fault* fault);

 private:
  cudaStream_t make_stream(StreamUse use) const;
  cublasHandle_t make_blas() const;
  void make_faults();

  const int gpu_;
  const std::string text_;
  const std::shared_ptr<const Hangs> hangs_;
  std::mutex mutex_;  // guards the rest
  std::array<std::vector<cudaStream_t>, 2> streams_;
  std::vector<cublasHandle_t> blas_;
  std::vector<Fault*> faults_;
  std::vector<void*> pages_;  // of faults, in pinned memory
};

}  // namespace tandem::cuda
