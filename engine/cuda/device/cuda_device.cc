#include "engine/cuda/device/cuda_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/cuda/device/gpu_executor.h"
#include "engine/cuda/device/host_executor.h"
#include "topologies/base/units.h"

namespace tandem::cuda {
namespace {

std::string bytes_text(double bytes) {
  return format_quantity(bytes, Dimension::bytes);
}

}  // namespace

std::vector<DType> cuda_dtypes() {
  return {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};
}

CudaDevice::CudaDevice(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu,
                       std::shared_ptr<threads::BlockPool> pinned, std::shared_ptr<IssueOrder> order, DeviceId id,
                       int index, bool with_graphs)
    : context_(context),
      worker_(worker),
      watch_(watch),
      gpu_(gpu),
      pinned_(std::move(pinned)),
      order_(std::move(order)),
      compute_stream_(order_->add_stream()),
      id_(std::move(id)),
      index_(index),
      with_graphs_(with_graphs) {
  if (place() == kHostPlace) return;
  memory_ = std::make_shared<DeviceMemory>(*this, gpu_, order_, compute_stream_);
  gpu_.add_user(*memory_);
}

// Tensors may outlive the run, and give back their memory then.
CudaDevice::~CudaDevice() {
  if (!memory_) return;
  gpu_.remove_user(*memory_);
  memory_->close();
}

std::unique_ptr<OpExecutor> CudaDevice::make_executor(int stream_index) {
  std::string text = fmt::format("stream {} of {}", stream_index, id_.text());
  if (id_.type == DeviceType::gpu) {
    const auto use = stream_index == kCommunicationStream ? StreamUse::communication : StreamUse::computation;
    return std::make_unique<GpuExecutor>(context_, worker_, watch_, gpu_, use,
                                         fmt::format("{} ({})", std::move(text), gpu_.text()), with_graphs_);
  }
  return std::make_unique<HostExecutor>(context_, watch_, gpu_, std::move(text));
}

CudaStream& CudaDevice::stream(int index) {
  TANDEM_REQUIRE(index >= 0, "a stream with a negative index");
  const std::lock_guard lock(mutex_);
  auto found = streams_.find(index);
  if (found == streams_.end()) {
    const int number = index == kComputeStream ? compute_stream_ : order_->add_stream();
    auto stream =
        std::make_unique<CudaStream>(context_, worker_, watch_, *this, index, make_executor(index), order_, number);
    found = streams_.emplace(index, std::move(stream)).first;
  }
  return *found->second;
}

std::shared_ptr<Buffer> CudaDevice::take(std::size_t bytes) {
  if (memory_) return memory_->take(bytes);
  void* block = pinned_->take(bytes);
  if (block == nullptr) {
    synchronize();  // finished work may still hold memory
    block = pinned_->take(bytes);
  }
  if (block == nullptr) return nullptr;
  auto memory = std::make_shared<threads::PooledMemory>(*this, pinned_, block, bytes, true);
  return std::make_shared<threads::PooledBuffer>(std::move(memory), pinned_use_);
}

Tensor CudaDevice::allocate(DType dtype, Shape shape) {
  if (dtype == DType::tf32) {
    throw RunError(fmt::format("{}: no tensors of tf32, which is a rate and no element type", id_.text()));
  }
  const std::size_t bytes = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  if (auto buffer = take(bytes)) return {std::move(buffer), dtype, shape};
  throw RunError(fmt::format("{}: no memory for a tensor {} of {}, {}: {} in use on this device, of what {} has",
                             id_.text(), shape.text(), name_of(dtype), bytes_text(static_cast<double>(bytes)),
                             bytes_text(static_cast<double>(memory_in_use_bytes())),
                             place() == kHostPlace ? "the host" : gpu_.text()));
}

std::vector<CudaStream*> CudaDevice::streams() {
  const std::lock_guard lock(mutex_);
  std::vector<CudaStream*> streams;
  for (const auto& [index, stream] : streams_) streams.push_back(stream.get());
  return streams;
}

// Asks all streams before waiting for one.
void CudaDevice::synchronize() {
  std::vector<Event> events;
  for (CudaStream* stream : streams()) events.push_back(stream->record());
  for (const Event& event : events) event.synchronize();
}

void CudaDevice::finish(std::vector<Record>& records) {
  for (CudaStream* stream : streams()) stream->finish(records);
}

}  // namespace tandem::cuda
