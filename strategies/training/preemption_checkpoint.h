// tf.distribute.experimental.PreemptionCheckpointHandler: workers that are to be terminated agree on a step, save a
// checkpoint after it, and end; the next run goes on from there.
//
//   PreemptionCheckpointHandler preemption(worker, manager);
//   while (steps_done < steps && preemption.run([&] { train_one_step(); })) ++steps_done;
//   if (preemption.is_preempted()) return preemption.exit_code();
//
// A notice costs messages only when it comes: the first worker that has one tells worker 0, which asks all for the
// number of calls that they have begun, and tells them the largest. Each runs as far as that and saves. A worker that
// was asked, or has a notice, begins no further call before it has the answer, so none is ahead of the agreed one. A
// program that waits for the work of no step may have begun many of them by then.
//
// Threads: one task of a worker calls it. Every worker that trains makes a handler and makes all its calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/worker.h"
#include "strategies/training/checkpoint_manager.h"

namespace tandem {

// tf.distribute.experimental.TerminationConfig.
struct TerminationConfig {
  // Whether this worker is to be terminated, asked before each call. Empty: whether the process has got SIGTERM since
  // the first handler of the process was made.
  std::function<bool()> termination_watcher{};
  std::function<void()> exit{};  // called after the last checkpoint, when all workers have saved; may be empty
  int exit_code = 143;           // 128 + SIGTERM, as on most platforms; 42 where a scheduler restarts on that
  double grace_period_s = 0;     // on the run's clock, from the first checkpoint to the last; 0: the first is the last
  std::function<void()> save{};  // instead of CheckpointManager::save()
};

class PreemptionCheckpointHandler {
 public:
  // `workers`: the indices in the run of the workers that train; empty: all of its job, and the chief. The manager must
  // outlive the handler.
  PreemptionCheckpointHandler(Worker& worker, CheckpointManager& manager, TerminationConfig config = {},
                              std::vector<int> workers = {});
  ~PreemptionCheckpointHandler();
  PreemptionCheckpointHandler(const PreemptionCheckpointHandler&) = delete;
  PreemptionCheckpointHandler& operator=(const PreemptionCheckpointHandler&) = delete;

  // Calls the function, which takes one step in step with the other workers, and returns true. Before, saves a
  // checkpoint if all have agreed on that; if it is the last one, returns false instead: the program is to end.
  bool run(const std::function<void()>& train_step);
  // How many calls of this handler have begun a step.
  int total_run_calls() const { return begun_; }
  bool is_preempted() const { return is_preempted_; }  // run() has returned false
  int exit_code() const { return config_.exit_code; }

 private:
  class Agreement;
  void save();
  bool grace_is_over();

  Worker& worker_;
  CheckpointManager& manager_;
  const TerminationConfig config_;
  int begun_ = 0;  // calls
  bool is_preempted_ = false;
  std::optional<Nanoseconds> first_saved_{};
  std::unique_ptr<Agreement> agreement_;
};

}  // namespace tandem
