// tf.keras.callbacks.BackupAndRestore: a training loop that is interrupted goes on from its last backup, and takes the
// steps that it would have taken.
//
//   BackupAndRestore backup(checkpoint, directory, {.save_freq = 100});
//   backup.on_train_begin();
//   while (backup.epoch() < epochs) {
//     DistributedIterator batches = backup.iterator(dataset);
//     while (const std::optional<Value> batch = batches.next()) {
//       if (!backup.run([&] { train_one_step(*batch); })) return backup.exit_code();
//     }
//     backup.on_epoch_end();
//   }
//   backup.on_train_end();
//
// A backup has the variables of the checkpoint, and where the loop was: epoch and step. What else steps depend on is to
// be in the checkpoint as well: an optimizer's slots (Optimizer::add_to), random generators, the states of metrics.
// Where the elements of the dataset follow from its seeds, losses and variables are then those of a run that nothing
// interrupts, bit for bit.
//
// Threads: one task of a worker calls it. Every worker that trains makes one, on one shared directory that nobody else
// uses, and makes all its calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/input/distributed_dataset.h"
#include "strategies/training/checkpoint_manager.h"
#include "strategies/training/preemption_checkpoint.h"

namespace tandem {

struct BackupAndRestoreOptions {
  static constexpr std::int64_t kEachEpoch = 0;
  // After how many steps a backup is saved, over all epochs, or kEachEpoch: at the end of each. Empty: only before the
  // workers are terminated.
  std::optional<std::int64_t> save_freq = kEachEpoch;
  bool delete_checkpoint = true;        // on_train_end() deletes the backup
  bool save_before_preemption = false;  // as a PreemptionCheckpointHandler does
  TerminationConfig termination{};      // for that; `save` is not used
  std::vector<int> workers{};           // for that: see PreemptionCheckpointHandler
};

class BackupAndRestore {
 public:
  // Adds epoch and steps to the checkpoint, which must outlive this. ValueError where nothing says when to save, for a
  // frequency below 1, and for what a CheckpointManager and a PreemptionCheckpointHandler refuse.
  BackupAndRestore(Checkpoint& checkpoint, std::string backup_dir, BackupAndRestoreOptions options = {});
  ~BackupAndRestore();
  BackupAndRestore(const BackupAndRestore&) = delete;
  BackupAndRestore& operator=(const BackupAndRestore&) = delete;

  // Restores the backup and returns true; false where there is none. Called when all that is in the checkpoint has been
  // created. Throws as CheckpointManager::restore_or_initialize() does.
  bool on_train_begin();
  std::int64_t epoch() const { return (*position_)[kEpoch]; }             // the current one, from 0
  std::int64_t step() const { return (*position_)[kStep]; }               // how many of its steps have been taken
  std::int64_t total_steps() const { return (*position_)[kTotalSteps]; }  // how many steps of all epochs

  // Starts an iteration over the dataset that the loop trains on, at the current step. After a backup was restored, the
  // first call also iterates over the dataset once for each epoch before, so that shuffle() and cache() do what they
  // would have done. An infinite dataset is iterated once for all epochs: ValueError for a second call.
  DistributedIterator iterator(const DistributedDataset& dataset);

  // Takes a step and counts it, saves a backup if it is time, and returns true. Where the workers are to be terminated,
  // saves one and returns false: the loop is to end, and the program with exit_code().
  bool run(const std::function<void()>& train_step);
  void on_epoch_end();
  // Deletes the backup, unless it is to stay.
  void on_train_end();

  void back_up();  // saves a backup now
  int exit_code() const { return options_.termination.exit_code; }
  const CheckpointManager& manager() const { return manager_; }

  // Where the loop was, in the checkpoint: these numbers (i64), under this name.
  enum Count : std::size_t { kEpoch, kStep, kTotalSteps, kCounts };
  static constexpr const char* kPosition = "backup/position";

 private:
  BackupAndRestoreOptions options_;
  // The checkpoint, which may live longer, has it, too.
  std::shared_ptr<std::vector<std::int64_t>> position_ = std::make_shared<std::vector<std::int64_t>>(kCounts);
  CheckpointManager manager_;
  std::unique_ptr<PreemptionCheckpointHandler> preemption_{};
  bool has_iterated_ = false;
};

}  // namespace tandem
