#include "engine/sim/sim_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sim/costs/kernel_constants.h"
#include "engine/sim/placement.h"
#include "engine/sim/sim_monitor.h"
#include "engine/sim/sim_stream.h"
#include "engine/sim/sim_worker.h"
#include "engine/sim/slowest_device.h"
#include "topologies/base/error.h"
#include "topologies/figures.h"

namespace tandem::sim {
namespace {

double waiting_in_step(const EngineOptions& options) {
  if (options.devices_in_step <= 1) return 1;
  const double spread = options.work_spread.value_or(kernel_constants::kWorkSpread);
  return (1 + kernel_constants::kInStepOverhead) * slowest_of(options.devices_in_step, spread);
}

bool merges_repeats_in(const EngineOptions& options, const Capabilities& capabilities) {
  return options.merges_repeats && !capabilities.carries_values && !options.schedule_seed && !options.faults &&
         options.topology->facts().share_spread <= 0 && options.records == RecordLevel::all &&
         options.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid;
}

}  // namespace

SimRun::SimRun(const EngineOptions& options, const Capabilities& capabilities, KnownTopology& known,
               symmetry::Symmetry* symmetry)
    : options_(options),
      capabilities_(capabilities),
      merges_repeats_(merges_repeats_in(options, capabilities)),
      symmetry_(symmetry != nullptr ? std::optional<symmetry::RunSymmetry>(std::in_place, *this, *symmetry)
                                    : std::nullopt),
      hosts_(running_hosts()),
      schedule_(options.schedule_seed),
      simulation_(*options.topology, known.router, hosts_, schedule_ ? &*schedule_ : nullptr),
      faults_(options.faults ? std::optional<FaultClock>(std::in_place, *options.faults, simulation_, fault_calls())
                             : std::nullopt),
      counts_uses_(faults_ && faults_->counts_uses()),
      network_(simulation_, faults()),
      cores_(simulation_),
      scheduler_(simulation_, cores_, schedule_ ? &*schedule_ : nullptr, [this] { return pending_work(); }),
      measured_times_(options.topology->facts().collectives),
      nccl_(*options.topology, options.nccl, known.communicators),
      shared_(std::make_unique<SimMonitor>(scheduler_)) {
  simulation_.on_idle([this] { scheduler_.check_deadlock(); });
  simulation_.on_beyond([this] { fail_beyond(); });
  add_devices();
  add_workers();
}

void SimRun::fail_beyond() {
  constexpr std::size_t kMost = 3;
  std::string message =
      "the simulated time passes 292 years, the most that records hold: a figure of the topology or a size of the job "
      "is far from what it should be";
  const std::vector<std::string> lines = pending_work();
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) message += "; " + lines[i];
  scheduler_.fail(std::make_exception_ptr(ImpossibleError(message)), Scheduler::Concerns::all_tasks);
}

SimRun::~SimRun() {
  Task::set_provider_of_this_thread(nullptr);
}

std::vector<HostSpec> SimRun::running_hosts() const {
  std::map<NodeIndex, int> cores;
  place_devices(options_, [&](const PlacedDevice& placed) {
    if (runs(placed.worker, placed.id)) cores[placed.node] = std::max(1, topology().device(placed.node)->cores);
  });
  std::vector<HostSpec> hosts;
  for (const auto& [node, count] : cores) hosts.push_back({node, count});
  return hosts;
}

// Nodes of one model with equally many devices cost the same.
void SimRun::add_devices() {
  std::vector<int> devices_on(topology().node_count());
  place_devices(options_, [&](const PlacedDevice& placed) { ++devices_on[placed.node]; });
  place_devices(options_, [&](const PlacedDevice& placed) {
    const bool is_of_threads = options_.workers[static_cast<std::size_t>(placed.worker)].device_type == DeviceType::cpu;
    int concurrency = devices_on[placed.node];
    if (const DeviceModel& model = *topology().device(placed.node); is_of_threads && model.wake_up_s.value > 0) {
      concurrency = std::min(concurrency, std::max(1, model.cores));  // no more threads run
    }
    PhysicalDevice& physical = physical_device(placed.node, concurrency);
    if (is_of_threads && runs(placed.worker)) add_threads(physical);
    devices_.emplace_back(*this, placed.id, static_cast<int>(devices_.size()), placed.worker, physical);
  });
  for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
    const WorkerSpec& spec = options_.workers[worker];
    if (!workers_by_task_[spec.job].emplace(spec.task, static_cast<int>(worker)).second) {
      throw Error(fmt::format("two workers are both /job:{}/task:{}", spec.job, spec.task));
    }
  }
}

// The devices of a CPU are threads where its model says what threads cost.
void SimRun::add_threads(PhysicalDevice& physical) {
  const DeviceCosts& costs = *physical.costs;
  if (physical.threads != nullptr || costs.wake_up_s() <= 0) return;
  physical.threads =
      &cores_.add_node(physical.node, {.cores = std::max(1, costs.model().cores),
                                       .hand_over_s = [&costs] { return costs.hand_over_s(); },
                                       .wake_up_s = [&costs](double idle_s) { return costs.wake_up_s(idle_s); }});
}

PhysicalDevice& SimRun::physical_device(NodeIndex node, int devices_on) {
  PhysicalDevice& physical = physical_[node];
  if (physical.costs == nullptr) {
    const auto& model = topology().device(node);
    std::unique_ptr<const DeviceCosts>& cost = costs_[{model.get(), devices_on}];
    if (!cost) {
      const bool is_gpu = topology().kind(node) == NodeKind::gpu;
      const NodeUse use{.concurrency = devices_on,
                        .waiting = waiting_in_step(options_),
                        .is_gpu = is_gpu,
                        .graphs = is_gpu && options_.graphs,
                        .records = is_recorded(RecordKind::op, options_.records)};
      cost = std::make_unique<const DeviceCosts>(model, use, notes_);
    }
    physical = {.node = node, .costs = cost.get()};
  }
  return physical;
}

void SimRun::add_workers() {
  std::size_t next = 0;
  for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
    const WorkerSpec& spec = options_.workers[worker];
    first_devices_.push_back(static_cast<int>(next));
    std::vector<Device*> local;
    for (int i = 0; i < spec.device_count; ++i) local.push_back(&devices_[next++]);
    const bool has_own_cpu = spec.device_type == DeviceType::cpu && spec.device_count > 0;
    SimDevice& cpu = has_own_cpu ? static_cast<SimDevice&>(*local.front()) : devices_[next++];
    workers_.emplace_back();
    if (!runs(static_cast<int>(worker))) continue;
    workers_.back() = std::make_unique<SimWorker>(*this, static_cast<int>(worker), std::move(local), cpu);
    working_.insert(static_cast<int>(worker));
  }
}

Timeline SimRun::run(const Program& program, double watchdog_s) {
  for (const auto& worker : workers_) {
    if (worker) worker->start(program);
  }
  scheduler_.run_watched(watchdog_s);
  if (scheduler_.error()) std::rethrow_exception(scheduler_.error());
  TANDEM_CHECK(!scheduler_.has_live_tasks(), "the simulation ended before its tasks");
  if (symmetry_ && symmetry_->is_provisional()) throw symmetry::Again();
  Timeline timeline = take_timeline();
  if (symmetry_) symmetry_->finish(timeline);
  return timeline;
}

void SimRun::set_lost(const LostWorker& lost, bool is_lost) {
  if (is_lost == this->is_lost(lost.worker)) return;
  if (is_lost) {
    lost_.emplace(lost.worker, lost);
    ++losses_[lost.worker];
  } else {
    lost_.erase(lost.worker);
  }
  for (const auto& watcher : watchers_) watcher->notify_all();
}

FaultClock::Calls SimRun::fault_calls() {
  return {.goes_on = [this] { return scheduler_.has_live_tasks() && !scheduler_.has_failed(); },
          .lose =
              [this](const LostWorker& lost, bool is_lost) {
                if (!lost.ends_run) return set_lost(lost, is_lost);
                const std::string name = options_.workers[static_cast<std::size_t>(lost.worker)].text();
                scheduler_.fail(lost_worker_error(lost, name), Scheduler::Concerns::all_tasks);
              }};
}

bool SimRun::goes_on_without(int worker, const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const UnavailableError&) {
    return is_lost(worker);
  } catch (...) {
    return false;
  }
}

void SimRun::count_use(int worker) {
  faults_->note_use(worker);
  scheduler_.throw_if_failed();
}

void SimRun::throw_lost(int worker) const {
  const auto lost = lost_.find(worker);
  if (lost == lost_.end()) return;
  std::rethrow_exception(lost_worker_error(lost->second, options_.workers[static_cast<std::size_t>(worker)].text()));
}

void SimRun::note_end_of_work(int worker) {
  if (working_.erase(worker) > 0 && working_.empty()) scheduler_.wake_all(joined_);
}

void SimRun::await_end_of_job(int worker) {
  note_end_of_work(worker);
  scheduler_.wait(
      joined_, [this] { return working_.empty(); }, [] { return std::string("the other programs of the job to end"); });
}

SimDevice& SimRun::device(const DeviceId& id) {
  if (SimDevice* found = find_device(id)) return *found;
  constexpr std::size_t kMost = 8;
  std::string known;
  for (std::size_t i = 0; i < std::min(devices_.size(), kMost); ++i) known += (i > 0 ? ", " : "") + devices_[i].name();
  if (devices_.size() > kMost) known += fmt::format(" and {} more", devices_.size() - kMost);
  throw UnavailableError(fmt::format("no device {} (there are: {})", id.text(), known));
}

// A worker has its compute devices, and after them its CPU:0 where that is none of them.
SimDevice* SimRun::find_device(const DeviceId& id) {
  const auto job = workers_by_task_.find(id.job);
  if (job == workers_by_task_.end()) return nullptr;
  const auto task = job->second.find(id.task);
  if (task == job->second.end()) return nullptr;
  const WorkerSpec& spec = options_.workers[static_cast<std::size_t>(task->second)];
  const auto first = static_cast<std::size_t>(first_devices_[static_cast<std::size_t>(task->second)]);
  if (id.type == spec.device_type && id.index >= 0 && id.index < spec.device_count) {
    return &devices_[first + static_cast<std::size_t>(id.index)];
  }
  if (id.type != DeviceType::cpu || id.index != 0) return nullptr;
  return &devices_[first + static_cast<std::size_t>(spec.device_count)];
}

int SimRun::current_step() const {
  return static_cast<const SimWorker&>(*Task::current().worker()).step();
}

std::vector<std::string> SimRun::pending_work() const {
  std::vector<std::string> lines;
  for (const auto& device : devices_) {
    for (const auto& [index, stream] : device.streams()) {
      if (!stream->is_idle()) lines.push_back(stream->text());
    }
  }
  return lines;
}

// What decides only what comes before the first step is kept apart.
void SimRun::begin_steps() {
  if (std::exchange(has_begun_steps_, true)) return;
  for (const std::string& input : consulted()) before_steps_.insert(input + std::string(kBeforeSteps));
  for (const auto& [key, costs] : costs_) costs->forget_consulted();
  network_.forget_consulted();
  remote_calls_.forget_consulted();
  nccl_.forget_consulted();
  depends_on_fidelity_ = false;
}

std::set<std::string> SimRun::consulted() const {
  std::set<std::string> inputs = before_steps_;
  for (const auto& [key, costs] : costs_) {
    costs->add_consulted(inputs);
    if (key.second > 1) inputs.insert(key.first->id + ".cores");
  }
  network_.add_consulted(inputs);
  remote_calls_.add_consulted(inputs);
  nccl_.add_consulted(inputs);
  if (depends_on_fidelity_) inputs.insert("collectives");
  return inputs;
}

NodeIndex SimRun::nearest_processor(NodeIndex gpu) {
  if (const auto known = nearest_processors_.find(gpu); known != nearest_processors_.end()) return known->second;
  const std::vector<NodeIndex> processors = topology().nodes_of(topology().worker(gpu), NodeKind::cpu);
  const auto links = [&](NodeIndex processor) { return simulation_.platform().route(processor, gpu)->hops.size(); };
  const NodeIndex nearest = *std::ranges::min_element(processors, {}, links);
  nearest_processors_.emplace(gpu, nearest);
  return nearest;
}

Timeline SimRun::take_timeline() {
  Timeline timeline;
  timeline.engine = capabilities_.engine;
  timeline.devices.reserve(devices_.size());
  for (const SimDevice& device : devices_) {
    timeline.devices.push_back({runs(device) ? device.name() : "", device.worker()});
  }
  timeline.records = records_.take_sorted();
  if (symmetry_) symmetry_->count_links();
  timeline.links = network_.link_use();
  timeline.notes = notes_.take();
  timeline.consulted = consulted();
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
