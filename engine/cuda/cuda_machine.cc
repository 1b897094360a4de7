#include "engine/cuda/cuda_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/cuda/collectives/collective_path.h"
#include "engine/cuda/collectives/copied_collectives.h"
#include "engine/cuda/collectives/nccl_collectives.h"
#include "engine/cuda/collectives/nccl_part.h"
#include "engine/cuda/device/cuda_device.h"
#include "engine/threads/remote_device.h"

namespace tandem::cuda {

Gpu& Gpus::at(int ordinal) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Gpu>& gpu = gpus_.at(static_cast<std::size_t>(ordinal));
  if (!gpu) gpu = std::make_unique<Gpu>(ordinal, watchdog_s_, hangs_);
  return *gpu;
}

std::shared_ptr<threads::BlockPool> Gpus::pinned_memory() {
  const std::lock_guard lock(mutex_);
  if (!pinned_memory_) pinned_memory_ = make_pinned_memory(hangs_);
  return pinned_memory_;
}

std::string Gpus::take_graph_counts() {
  const std::lock_guard lock(mutex_);
  std::int64_t series = 0, as_graphs = 0, captured = 0, updated = 0;
  for (const auto& gpu : gpus_) {
    if (!gpu) continue;
    GraphCounts& counts = gpu->graph_counts();
    series += counts.series.exchange(0);
    as_graphs += counts.as_graphs.exchange(0);
    captured += counts.captured.exchange(0);
    updated += counts.updated.exchange(0);
  }
  if (series == 0) return "";
  return fmt::format("{} of {} series launched as graphs; {} captured, {} updated", as_graphs, series, captured,
                     updated);
}

// CUDA documents the resolution with cudaEventElapsedTime.
std::string Gpus::clock_text() const {
  const std::lock_guard lock(mutex_);
  Nanoseconds most = 0;
  for (const auto& gpu : gpus_) most = gpu ? std::max(most, gpu->clock().error_ns()) : most;
  return fmt::format("times of CUDA events, to about 0.5 us; GPU and host agree to {:.1f} us",
                     static_cast<double>(most) * 1e-3);
}

// The copies of a host device are executed by the GPU with its number, so that several GPUs share the work.
std::unique_ptr<threads::LocalDevice> CudaMachine::make_device(threads::RunContext& context,
                                                               threads::WorkerState& worker, DeviceId id, int index) {
  control_.store(&context.control);
  Gpu& gpu = gpus_.at(gpu_of(first_gpu_ + id.index, gpus_.count()));
  return std::make_unique<CudaDevice>(context, worker, watch_, gpu, gpus_.pinned_memory(), order_, std::move(id), index,
                                      with_graphs_);
}

namespace {

std::vector<std::string> names_of(const std::vector<Device*>& devices) {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->id().text());
  return names;
}

// Returns the ranks of a group that are in this process.
std::vector<NcclMember> members_here(const std::vector<Device*>& devices) {
  std::vector<NcclMember> members;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (dynamic_cast<const threads::RemoteDevice*>(devices[rank]) != nullptr) continue;
    const auto& device = static_cast<const CudaDevice&>(*devices[rank]);
    members.push_back(
        {.rank = static_cast<int>(rank), .gpu = device.place(), .name = device.id().text(), .device = &device.gpu()});
  }
  return members;
}

}  // namespace

std::shared_ptr<threads::CollectiveExecutor> CudaMachine::make_collective_executor(
    const std::vector<Device*>& devices) {
  const std::vector<std::string> names = names_of(devices);
  std::vector<NcclMember> members = members_here(devices);
  std::vector<int> places;
  for (const NcclMember& member : members) places.push_back(member.gpu);
  const auto on_host = std::count(places.begin(), places.end(), kHostPlace);
  if (on_host == static_cast<std::ptrdiff_t>(places.size())) return nullptr;
  if (on_host > 0) {
    throw Error(fmt::format("there is no communicator of CPUs and GPUs together: {}", fmt::join(names, ", ")));
  }
  {
    const std::lock_guard lock(mutex_);
    paths_.insert(path_text(places));
  }
  if (path_for(places) == CollectivePath::copies) return std::make_shared<CopiedCollectives>();
  auto communicators =
      std::make_shared<NcclCommunicators>(NcclId::make(), static_cast<int>(places.size()), std::move(members),
                                          gpus_.watchdog_s(), [this] { return control_.load()->is_stopped(); });
  watch_.add(communicators);
  return std::make_shared<NcclCollectives>(std::move(communicators), names);
}

std::shared_ptr<threads::SpanningPart> CudaMachine::make_spanning_part(const std::vector<Device*>& devices) {
  return std::make_shared<NcclPart>(names_of(devices), members_here(devices), watch_);
}

threads::HostStaging& CudaMachine::staging() {
  const std::lock_guard lock(mutex_);
  if (!staging_) staging_ = std::make_unique<StagedOperands>(gpus_.pinned_memory(), watch_);
  return *staging_;
}

std::string CudaMachine::collectives() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}", fmt::join(paths_, "; "));
}

}  // namespace tandem::cuda
