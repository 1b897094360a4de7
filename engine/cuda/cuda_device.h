// A logical device of the cuda engine: a share of a GPU, or a worker's CPU over pinned memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/cuda_kernels.h"
#include "engine/cuda/cuda_stream.h"

namespace tandem::cuda {

class CudaDevice final : public threads::LocalDevice {
 public:
  // `gpu` is the one that the device is on, or that executes the host's copies; `memory` is the GPU's or pinned.
  CudaDevice(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu,
             std::shared_ptr<threads::BlockPool> memory, DeviceId id, int index, bool with_graphs);

  const DeviceId& id() const override { return id_; }
  int index() const override { return index_; }
  int worker() const override { return worker_.index(); }
  CudaStream& stream(int index) override;
  Tensor allocate(DType dtype, Shape shape) override;
  std::int64_t memory_in_use_bytes() const override { return memory_use_->in_use_bytes.load(); }
  std::int64_t memory_peak_bytes() const override { return memory_use_->peak_bytes.load(); }
  void synchronize() override;
  void finish(std::vector<Record>& records) override;

  Gpu& gpu() const { return gpu_; }
  int place() const { return id_.type == DeviceType::gpu ? gpu_.ordinal() : kHostPlace; }

 private:
  std::unique_ptr<OpExecutor> make_executor(int stream_index);
  std::vector<CudaStream*> streams();

  threads::RunContext& context_;
  threads::WorkerState& worker_;
  GpuWatch& watch_;
  Gpu& gpu_;
  const std::shared_ptr<threads::BlockPool> memory_;
  const DeviceId id_;
  const int index_;
  const bool with_graphs_;
  const std::shared_ptr<threads::MemoryUse> memory_use_ = std::make_shared<threads::MemoryUse>();
  std::mutex mutex_;
  std::map<int, std::unique_ptr<CudaStream>> streams_;
};

// Returns the element types of tensors, on GPUs and on the host.
std::vector<DType> cuda_dtypes();

}  // namespace tandem::cuda
