// The checkpoints of a training loop over a workload: the state of all its steps, saved as often as it is asked for.
//
// Used within a worker's program; every worker that trains makes one, after Workload::prepare().
#pragma once

#include "scenarios/workloads/workload.h"
#include "strategies/training/backup_and_restore.h"

namespace tandem {

// Where a run saves checkpoints, from which the next run goes on if this one does not come to its end.
struct StepCheckpoints {
  std::string directory{};
  std::int64_t every = 1;     // steps
  std::int64_t training = 0;  // a hash of what is trained
};

class SavedSteps {
 public:
  // Restores the last checkpoint, if there is one. UnavailableError where workers find different ones.
  SavedSteps(Workload& workload, Worker& worker, const StepCheckpoints& checkpoints);

  int first_step() const { return static_cast<int>(first_step_); }
  void run(const std::function<void()>& step) { backup_.run(step); }
  // Deletes the checkpoint, after the last step.
  void end() { backup_.on_train_end(); }

 private:
  Checkpoint checkpoint_;
  BackupAndRestore backup_;
  std::int64_t first_step_ = 0;
};

// What a checkpoint of a run says of it; nothing where the directory has none. Throws as latest_checkpoint() and
// CheckpointReader do.
struct SavedRun {
  std::string checkpoint{};   // its file
  std::int64_t steps = 0;     // that were taken
  std::int64_t training = 0;  // StepCheckpoints::training
};
std::optional<SavedRun> saved_run(const std::string& directory);

}  // namespace tandem
