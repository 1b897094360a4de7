// One run of the sim engine: the devices and workers of the cluster, the simulation below them, and the records.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/record_log.h"
#include "engine/shared_objects.h"
#include "engine/sim/base/notes.h"
#include "engine/sim/base/seeded_schedule.h"
#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/collectives/measured_times.h"
#include "engine/sim/collectives/nccl_groups.h"
#include "engine/sim/fault_clock.h"
#include "engine/sim/network.h"
#include "engine/sim/placement.h"
#include "engine/sim/remote_calls.h"
#include "engine/sim/scheduler.h"
#include "engine/sim/sim_device.h"
#include "engine/sim/simulation.h"
#include "engine/sim/stream_work.h"
#include "engine/sim/symmetry/run_symmetry.h"

namespace tandem::sim {

class SimWorker;

// What the runs of one engine have found out about its topology.
struct KnownTopology {
  explicit KnownTopology(const EngineOptions& options)
      : router(*options.topology), communicators(*options.topology, router, nccl::settings_of(options.nccl)) {}

  Router router;
  nccl::Communicators communicators;
};

class SimRun {
 public:
  // `options` have been checked (open_sim_engine); all arguments must outlive the run. `symmetry`: what is known about
  // workers that represent others; null: every worker runs.
  SimRun(const EngineOptions& options, const Capabilities& capabilities, KnownTopology& known,
         symmetry::Symmetry* symmetry = nullptr);
  ~SimRun();
  SimRun(const SimRun&) = delete;
  SimRun& operator=(const SimRun&) = delete;

  // Runs the program on every running worker and returns the records. May be called once.
  Timeline run(const Program& program, double watchdog_s);  // see Scheduler::run_watched()

  const Capabilities& capabilities() const { return capabilities_; }
  const Topology& topology() const { return *options_.topology; }
  bool carries_values() const { return capabilities_.carries_values; }
  CollectiveFidelity fidelity() const {
    depends_on_fidelity_ = true;
    return options_.collectives.value_or(CollectiveFidelity::fluid);
  }
  bool limits_memory() const { return options_.limits_memory; }
  bool merges_repeats() const { return merges_repeats_; }  // see EngineOptions
  Simulation& simulation() { return simulation_; }
  Network& network() { return network_; }
  RemoteCalls& remote_calls() { return remote_calls_; }
  Cores& cores() { return cores_; }
  Scheduler& scheduler() { return scheduler_; }
  Notes& notes() { return notes_; }
  CollectiveGroups& groups() { return groups_; }
  NcclGroups& nccl() { return nccl_; }
  const MeasuredTimes& measured_times() const { return measured_times_; }

  // See Worker.
  bool is_lost(int worker) const { return !lost_.empty() && lost_.contains(worker); }
  int losses(int worker) const {
    const auto count = losses_.find(worker);
    return count == losses_.end() ? 0 : count->second;
  }
  // Somebody gives work to a device of this worker, or has waited for it. Throws where the worker is lost.
  void note_use(int worker) {
    if (counts_uses_) count_use(worker);
    if (!lost_.empty()) throw_lost(worker);
  }
  // Whether the run goes on without a worker whose program has ended with this: it is lost, and may come back.
  bool goes_on_without(int worker, const std::exception_ptr& error) const;
  void set_lost(const LostWorker& lost, bool is_lost);  // in the kernel
  void watch_workers(std::shared_ptr<Monitor> monitor) { watchers_.push_back(std::move(monitor)); }

  FaultClock* faults() { return faults_ ? &*faults_ : nullptr; }                   // null: nothing goes wrong
  symmetry::RunSymmetry* symmetry() { return symmetry_ ? &*symmetry_ : nullptr; }  // null: every worker runs
  bool runs(int worker) const { return !symmetry_ || symmetry_->runs(worker); }
  bool runs(int worker, const DeviceId& device) const { return !symmetry_ || symmetry_->runs(worker, device); }
  bool runs(const SimDevice& device) const { return runs(device.worker(), device.id()); }
  // Returns the device that is so many places after this one, on the same worker; see symmetry::DeviceBlocks.
  const SimDevice& device_after(const SimDevice& device, int places) const {
    return devices_[static_cast<std::size_t>(device.index() + places)];
  }
  int first_device_of(int worker) const { return first_devices_[static_cast<std::size_t>(worker)]; }
  Network::Pair two_hosts() const { return {hosts_[0].node, hosts_[1].node}; }  // of running workers

  // Returns the processor of a GPU's machine from which the fewest links lead to it, the first of several.
  NodeIndex nearest_processor(NodeIndex gpu);
  int worker_count() const { return static_cast<int>(workers_.size()); }
  const std::vector<WorkerSpec>& specs() const { return options_.workers; }
  SharedObjects& shared() { return shared_; }
  SimDevice& device(const DeviceId& id);  // throws UnavailableError naming the known ones
  int current_step() const;               // of the running task's worker
  void begin_steps();                     // a worker begins its first step
  // The program of a worker has ended, or waits for the end of the job.
  void note_end_of_work(int worker);
  void await_end_of_job(int worker);
  void add_record(const Record& record) {
    if (is_recorded(record.kind, options_.records)) records_.add(record);
  }

 private:
  // The nodes of the devices of workers that run, in ascending order, with the number of cores of each.
  std::vector<HostSpec> running_hosts() const;
  void add_devices();
  PhysicalDevice& physical_device(NodeIndex node, int devices_on);
  void add_threads(PhysicalDevice& physical);
  void add_workers();
  SimDevice* find_device(const DeviceId& id);  // null if there is none
  std::vector<std::string> pending_work() const;
  void fail_beyond();
  void count_use(int worker);
  void throw_lost(int worker) const;
  FaultClock::Calls fault_calls();
  std::set<std::string> consulted() const;
  Timeline take_timeline();

  const EngineOptions& options_;
  const Capabilities& capabilities_;
  const bool merges_repeats_;
  std::optional<symmetry::RunSymmetry> symmetry_;
  std::unordered_map<NodeIndex, NodeIndex> nearest_processors_;  // by GPU
  OpWork::Memory memory_of_ops_;
  Notes notes_;
  std::vector<HostSpec> hosts_;
  std::optional<SeededSchedule> schedule_;
  Simulation simulation_;
  std::optional<FaultClock> faults_;
  const bool counts_uses_;
  Network network_;
  RemoteCalls remote_calls_{simulation_, notes_};
  Cores cores_;
  Scheduler scheduler_;
  const MeasuredTimes measured_times_;
  CollectiveGroups groups_;
  NcclGroups nccl_;
  // By model and number of devices on the node.
  std::map<std::pair<const DeviceModel*, int>, std::unique_ptr<const DeviceCosts>> costs_;
  std::unordered_map<NodeIndex, PhysicalDevice> physical_;  // never iterated
  std::deque<SimDevice> devices_;                           // a deque, because their addresses must not change
  std::map<std::string, std::unordered_map<int, int>, std::less<>> workers_by_task_;  // by job and task
  std::vector<int> first_devices_;                                                    // by worker
  std::vector<std::unique_ptr<SimWorker>> workers_;                                   // null: another one represents it
  std::set<int> working_;  // the running workers whose programs neither have ended nor wait for the end of the job
  WaitList joined_;        // the tasks that wait for it
  mutable bool depends_on_fidelity_ = false;        // somebody has asked
  std::map<int, int> losses_;                       // so far, by worker
  std::map<int, LostWorker> lost_;                  // by worker
  std::vector<std::shared_ptr<Monitor>> watchers_;  // of workers that are lost or come back
  bool has_begun_steps_ = false;
  std::set<std::string> before_steps_;  // consulted before the first step
  RecordLog records_;
  SharedObjects shared_;  // the last member, because the objects may hold memory of the devices
};

}  // namespace tandem::sim
