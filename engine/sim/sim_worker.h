// A worker of a simulated run. Its program and its replica functions are actors on the host of its CPU.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/shared_objects.h"
#include "engine/sim/collectives/sim_communicator.h"
#include "engine/sim/sim_run.h"
#include "engine/worker.h"

namespace tandem::sim {

class SimWorker : public Worker, public SharedInProcess, public Tasks {
 public:
  SimWorker(SimRun& run, int index, std::vector<Device*> devices, SimDevice& cpu);
  ~SimWorker() override;

  int index() const override { return index_; }
  std::span<const WorkerSpec> cluster() const override { return run_.specs(); }
  SharedState& shared() override { return *this; }
  std::shared_ptr<void> object(std::string_view name, const Factory& make) override;
  void await_end_of_job() override;
  bool is_lost(int worker) const override { return run_.is_lost(worker); }
  int losses(int worker) const override { return run_.losses(worker); }
  void watch_workers(std::shared_ptr<Monitor> monitor) override { run_.watch_workers(std::move(monitor)); }
  const Capabilities& capabilities() const override { return run_.capabilities(); }
  std::span<Device* const> devices() const override { return devices_; }
  Device& cpu() override { return cpu_; }
  bool runs(const Device& device) const override { return run_.runs(static_cast<const SimDevice&>(device)); }
  Device& device(const DeviceId& id) override;
  Nanoseconds now() override;
  Tasks& tasks() override { return *this; }
  void run_concurrently(int n, const std::function<void(int)>& function) override;
  // Where threads take time to wake up, functions after the first begin as late as they may, on a thread that sleeps.
  void run_in_turn(int n, const std::function<void(int)>& function) override;
  std::unique_ptr<BackgroundTask> start(std::string_view name, std::function<void()> function) override;
  std::unique_ptr<Monitor> make_monitor() override;
  Communicator& communicator(std::span<const DeviceId> devices) override;
  void took_input(std::int64_t elements, std::int64_t bytes) override;
  void begin_step(int step) override;
  void end_step() override;

  int step() const { return step_; }
  void start(const Program& program);  // in a task of its own

 private:
  std::unique_ptr<SimTask> make_task(std::string name);
  // Those that do not take a thread when they start get one later.
  void run_functions(int n, const std::function<void(int)>& function, bool take_threads);
  void needs_all_workers(std::string_view why) const;

  SimRun& run_;
  int index_;
  std::vector<Device*> devices_;
  SimDevice& cpu_;
  std::map<CollectiveGroup*, std::unique_ptr<SimCommunicator>> communicators_;  // never iterated
  int step_ = kNoStep;
  Nanoseconds step_start_ns_ = 0;
};

}  // namespace tandem::sim
