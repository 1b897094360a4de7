#include "engine/cuda/device/gpu_handles.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/gpu.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

constexpr int kStreamsAtOpening = 2;  // of each use
constexpr std::size_t kFaultsOfPage = 512;

// Takes a kept handle; returns null if there is none.
template <typename Handle>
Handle taken(std::mutex& mutex, std::vector<Handle>& kept) {
  const std::lock_guard lock(mutex);
  if (kept.empty()) return nullptr;
  Handle handle = kept.back();
  kept.pop_back();
  return handle;
}

template <typename Handle>
void keep(std::mutex& mutex, std::vector<Handle>& kept, Handle handle) {
  const std::lock_guard lock(mutex);
  kept.push_back(handle);
}

}  // namespace

bool Hangs::any() const {
  return std::any_of(hangs_.begin(), hangs_.end(), [](const auto& hangs) { return hangs.load(); });
}

GpuHandles::GpuHandles(int gpu, std::shared_ptr<const Hangs> hangs)
    : gpu_(gpu), text_(fmt::format("GPU {}", gpu)), hangs_(std::move(hangs)) {
  for (const StreamUse use : {StreamUse::computation, StreamUse::communication}) {
    for (int i = 0; i < kStreamsAtOpening; ++i) streams_[static_cast<std::size_t>(use)].push_back(make_stream(use));
  }
  blas_.push_back(make_blas());
  make_faults();
}

GpuHandles::~GpuHandles() {
  if (hangs_->any()) return;  // pinned memory belongs to every GPU
  try {
    const LaunchTurn turn;
    const UseGpu use(gpu_);
    for (cublasHandle_t blas : blas_) cublasDestroy(blas);
    for (const auto& streams : streams_) {
      for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    }
    for (void* page : pages_) cudaFreeHost(page);
  } catch (const RunError&) {  // a GPU has failed, or the turn did not come: the process keeps them
  }
}

cudaStream_t GpuHandles::make_stream(StreamUse use) const {
  const LaunchTurn turn;
  const UseGpu use_gpu(gpu_);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange", text_);
  cudaStream_t stream{};
  check(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, use == StreamUse::communication ? greatest : least),
      "cudaStreamCreateWithPriority", text_);
  return stream;
}

// Sums of halves are rounded once, whatever the library splits them into.
cublasHandle_t GpuHandles::make_blas() const {
  const LaunchTurn turn;
  const UseGpu use(gpu_);
  cublasHandle_t blas{};
  check(cublasCreate(&blas), "cublasCreate", text_);
  const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  check(cublasSetMathMode(blas, mode), "cublasSetMathMode", text_);
  return blas;
}

void GpuHandles::make_faults() {
  const LaunchTurn turn;
  const UseGpu use(gpu_);
  void* page = nullptr;
  check(cudaHostAlloc(&page, kFaultsOfPage * sizeof(Fault), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc", text_);
  const std::lock_guard lock(mutex_);
  pages_.push_back(page);
  for (std::size_t i = 0; i < kFaultsOfPage; ++i) faults_.push_back(static_cast<Fault*>(page) + i);
}

cudaStream_t GpuHandles::take_stream(StreamUse use) {
  cudaStream_t stream = taken(mutex_, streams_[static_cast<std::size_t>(use)]);
  return stream != nullptr ? stream : make_stream(use);
}

cublasHandle_t GpuHandles::take_blas() {
  cublasHandle_t blas = taken(mutex_, blas_);
  return blas != nullptr ? blas : make_blas();
}

Fault* GpuHandles::take_fault() {
  Fault* fault = taken(mutex_, faults_);
  if (fault == nullptr) {
    make_faults();
    fault = taken(mutex_, faults_);
  }
  TANDEM_CHECK(fault != nullptr, "a page without a fault word");
  return new (fault) Fault;
}

void GpuHandles::give_back(cudaStream_t stream, StreamUse use) {
  keep(mutex_, streams_[static_cast<std::size_t>(use)], stream);
}

void GpuHandles::give_back(cublasHandle_t blas) {
  keep(mutex_, blas_, blas);
}

void GpuHandles::give_back(Fault* fault) {
  keep(mutex_, faults_, fault);
}

}  // namespace tandem::cuda
