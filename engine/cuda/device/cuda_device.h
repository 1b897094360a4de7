// A logical device of the cuda engine: a share of a GPU, or a worker's CPU over pinned memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/device/cuda_kernels.h"
#include "engine/cuda/device/cuda_stream.h"
#include "engine/cuda/device/device_memory.h"

namespace tandem::cuda {

class CudaDevice final : public threads::LocalDevice {
 public:
  // `gpu` is the one that the device is on, or that executes the host's copies; `pinned` is the host's memory.
  CudaDevice(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu,
             std::shared_ptr<threads::BlockPool> pinned, std::shared_ptr<IssueOrder> order, DeviceId id, int index,
             bool with_graphs);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceId& id() const override { return id_; }
  int index() const override { return index_; }
  int worker() const override { return worker_.index(); }
  CudaStream& stream(int index) override;
  Tensor allocate(DType dtype, Shape shape) override;
  const threads::MemoryUse& memory_use() const override { return memory_ ? memory_->use() : *pinned_use_; }
  void synchronize() override;
  void finish(std::vector<Record>& records) override;

  Gpu& gpu() const { return gpu_; }
  int place() const { return id_.type == DeviceType::gpu ? gpu_.ordinal() : kHostPlace; }

 private:
  std::unique_ptr<OpExecutor> make_executor(int stream_index);
  std::vector<CudaStream*> streams();
  std::shared_ptr<Buffer> take(std::size_t bytes);

  threads::RunContext& context_;
  threads::WorkerState& worker_;
  GpuWatch& watch_;
  Gpu& gpu_;
  const std::shared_ptr<threads::BlockPool> pinned_;
  const std::shared_ptr<IssueOrder> order_;
  const int compute_stream_;  // its number in that order
  const DeviceId id_;
  const int index_;
  const bool with_graphs_;
  const std::shared_ptr<threads::MemoryUse> pinned_use_ = std::make_shared<threads::MemoryUse>();
  std::shared_ptr<DeviceMemory> memory_;  // null for the host
  std::mutex mutex_;                      // guards streams_
  std::map<int, std::unique_ptr<CudaStream>> streams_;
};

// Returns the element types of tensors, on GPUs and on the host.
std::vector<DType> cuda_dtypes();

}  // namespace tandem::cuda
