#include "engine/sim/sim_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/sim/kernel_constants.h"
#include "engine/sim/placement.h"
#include "engine/sim/sim_monitor.h"
#include "engine/sim/sim_stream.h"
#include "engine/sim/sim_worker.h"
#include "engine/sim/slowest_device.h"

namespace tandem::sim {
namespace {

double waiting_in_step(const EngineOptions& options) {
  if (options.devices_in_step <= 1) return 1;
  const double spread = options.work_spread.value_or(kernel_constants::kWorkSpread);
  return (1 + kernel_constants::kInStepOverhead) * slowest_of(options.devices_in_step, spread);
}

}  // namespace

SimRun::SimRun(const EngineOptions& options, const Capabilities& capabilities, symmetry::Symmetry* symmetry)
    : options_(options),
      capabilities_(capabilities),
      symmetry_(symmetry != nullptr ? std::optional<symmetry::RunSymmetry>(std::in_place, *this, *symmetry)
                                    : std::nullopt),
      placed_(place_devices(options)),
      hosts_(running_hosts()),
      schedule_(options.schedule_seed),
      simulation_(*options.topology, hosts_, schedule_ ? &*schedule_ : nullptr),
      network_(simulation_),
      scheduler_(simulation_, schedule_ ? &*schedule_ : nullptr, [this] { return pending_work(); }),
      measured_times_(options.topology->collectives()),
      nccl_(*options.topology, options.nccl),
      shared_(std::make_unique<SimMonitor>(scheduler_)) {
  simulation_.on_idle([this] { scheduler_.check_deadlock(); });
  add_devices();
  add_workers();
}

SimRun::~SimRun() {
  Task::set_provider_of_this_thread(nullptr);
}

std::vector<HostSpec> SimRun::running_hosts() const {
  std::vector<PlacedDevice> running = placed_;
  std::erase_if(running, [this](const PlacedDevice& device) { return !runs(device.worker); });
  return hosts_of(topology(), running);
}

// Nodes of one model with equally many devices cost the same.
void SimRun::add_devices() {
  std::map<NodeIndex, int> devices_on;
  for (const PlacedDevice& placed : placed_) ++devices_on[placed.node];
  const double waiting = waiting_in_step(options_);
  std::map<std::pair<const DeviceModel*, int>, std::shared_ptr<const DeviceCosts>> costs;
  for (const auto& [node, count] : devices_on) {
    const auto& model = topology().node(node).device;
    auto memory = std::make_shared<MemoryPool>(MemoryPool{.capacity_bytes = model->memory_bytes.value});
    const bool has_graphs = options_.graphs && topology().node(node).kind == NodeKind::gpu;
    std::shared_ptr<const DeviceCosts>& cost = costs[{model.get(), count}];
    if (!cost) cost = std::make_shared<const DeviceCosts>(model, count, notes_, waiting, has_graphs);
    physical_[node].reset(new PhysicalDevice{node, cost, std::move(memory)});
  }
  for (const PlacedDevice& placed : placed_) {
    const int index = static_cast<int>(devices_.size());
    devices_.push_back(std::make_unique<SimDevice>(*this, placed.id, index, placed.worker, *physical_[placed.node]));
    if (!by_id_.emplace(placed.id, devices_.back().get()).second) {
      throw Error(fmt::format("two workers are both /job:{}/task:{}", placed.id.job, placed.id.task));
    }
  }
}

void SimRun::add_workers() {
  std::size_t next = 0;
  for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
    const WorkerSpec& spec = options_.workers[worker];
    first_devices_.push_back(static_cast<int>(next));
    std::vector<Device*> local;
    for (int i = 0; i < spec.device_count; ++i) local.push_back(devices_[next++].get());
    const bool has_own_cpu = spec.device_type == DeviceType::cpu && spec.device_count > 0;
    SimDevice& cpu = has_own_cpu ? static_cast<SimDevice&>(*local.front()) : *devices_[next++];
    workers_.emplace_back();
    if (!runs(static_cast<int>(worker))) continue;
    workers_.back() = std::make_unique<SimWorker>(*this, static_cast<int>(worker), spec, std::move(local), cpu);
  }
}

Timeline SimRun::execute(const Program& program) {
  for (const auto& worker : workers_) {
    if (worker) worker->start(program);
  }
  simulation_.run();
  if (scheduler_.error()) std::rethrow_exception(scheduler_.error());
  Timeline timeline = take_timeline();
  if (symmetry_) symmetry_->finish(timeline);
  return timeline;
}

SimDevice& SimRun::device(const DeviceId& id) {
  if (const auto found = by_id_.find(id); found != by_id_.end()) return *found->second;
  constexpr std::size_t kMost = 8;
  std::string known;
  for (std::size_t i = 0; i < std::min(devices_.size(), kMost); ++i) known += (i > 0 ? ", " : "") + devices_[i]->name();
  if (devices_.size() > kMost) known += fmt::format(" and {} more", devices_.size() - kMost);
  throw UnavailableError(fmt::format("no device {} (there are: {})", id.text(), known));
}

int SimRun::current_step() const {
  return static_cast<const SimWorker&>(*Task::current().worker()).step();
}

std::vector<std::string> SimRun::pending_work() const {
  std::vector<std::string> lines;
  for (const auto& device : devices_) {
    for (const auto& [index, stream] : device->streams()) {
      if (!stream->is_idle()) lines.push_back(stream->text());
    }
  }
  return lines;
}

Timeline SimRun::take_timeline() {
  Timeline timeline;
  timeline.engine = capabilities_.engine;
  for (const auto& device : devices_) timeline.devices.push_back({device->name(), device->worker()});
  timeline.records = records_.take_sorted();
  timeline.notes = notes_.take();
  timeline.settings = {
      {"collectives", fidelity() == CollectiveFidelity::fluid ? "fluid" : "message"},
      {"network_model", "CM02"},
      {"network_options", "TCP-gamma 0, crosstraffic 0"},
      {"simgrid", simgrid_compat::version_text()},
      {"topology", topology().name()},
      {"values", carries_values() ? "real" : "none"},
  };
  if (nccl_.was_used()) timeline.settings["nccl"] = nccl_.text();
  if (schedule_) {
    timeline.settings["schedule_seed"] = std::to_string(schedule_->seed());
    timeline.settings["schedule_choices"] = std::to_string(schedule_->choices());
  }
  return timeline;
}

}  // namespace tandem::sim
