// tf.train.CheckpointManager: a directory of numbered checkpoints, of which the newest are kept.
//
// Every worker of a strategy makes a manager of its own, on one shared directory, before the first save(), and makes
// all its calls. Only the worker that Checkpoint::writes() names creates and deletes files. No other manager writes to
// the directory meanwhile.
//
// Wherever a program is killed, the directory's state names a checkpoint that is whole: the new one, or the one before.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategies/training/checkpoint_state.h"
#include "strategies/variables/checkpoint.h"

namespace tandem {

struct CheckpointManagerOptions {
  std::optional<int> max_to_keep{};  // empty: all
  // A checkpoint stays for good if as many hours have passed since the last one that does, on the clock of the run
  // (Worker::now()), which goes on from the last time in the state of the directory.
  std::optional<double> keep_checkpoint_every_n_hours{};
  std::string checkpoint_name = "ckpt";  // files are named "<checkpoint_name>-<number>"
  // With both, save() does nothing until the counter is `checkpoint_interval` larger than at the last save.
  std::shared_ptr<Variable> step_counter{};
  std::optional<std::int64_t> checkpoint_interval{};
  std::function<void()> init_fn{};  // called by restore_or_initialize() where there is no checkpoint
};

class CheckpointManager {
 public:
  // Reads the state that the directory has, if any. The checkpoint must outlive the manager. ValueError for a number of
  // checkpoints or hours that is not positive, an interval without a counter and a name that no file can have;
  // DataLossError for a damaged state.
  CheckpointManager(const Checkpoint& checkpoint, std::string directory, CheckpointManagerOptions options = {});

  // Saves a checkpoint, then the state that names it, and then deletes the oldest checkpoints beyond `max_to_keep`, so
  // that the state is readable whenever a crash comes. The number is by default one more than the last one's, from 1.
  // Returns the file's name with the directory, or nothing before the interval has passed. Throws as Checkpoint::save()
  // does: RuntimeError inside run().
  std::optional<std::string> save(std::optional<std::int64_t> checkpoint_number = std::nullopt,
                                  bool check_interval = true);
  // Restores the latest checkpoint and returns its name. Where the state names none, calls `init_fn` and returns
  // nothing. Throws as Checkpoint::restore() does: like TensorFlow, it takes no older checkpoint for one that is
  // damaged or gone. checkpoints() has the names of those.
  std::optional<std::string> restore_or_initialize();
  // Deletes the state and all checkpoints that it names, and the directory if that leaves nothing in it.
  void remove_all();

  const std::string& directory() const { return directory_; }
  std::optional<std::string> latest_checkpoint() const;
  std::vector<std::string> checkpoints() const;  // that are kept, oldest first, without those that stay for good
  std::optional<std::int64_t> checkpoint_interval() const { return options_.checkpoint_interval; }

 private:
  std::string path_of(const std::string& name) const;
  double now_s() const;
  std::int64_t step() const;
  bool is_before_interval() const;
  std::vector<std::string> taken_out();
  void remove(const std::vector<std::string>& names) const;
  void remove_leftovers() const;

  const Checkpoint& checkpoint_;
  std::string directory_;
  CheckpointManagerOptions options_;
  std::optional<CheckpointState> state_;
  double before_s_ = 0;      // what the clocks of earlier runs have shown
  double start_s_ = 0;       // when this run made the manager
  std::int64_t number_ = 0;  // of the last checkpoint
  std::optional<std::int64_t> saved_step_;
};

// tf.train.latest_checkpoint: the name, with the directory, of the latest checkpoint that the directory's state names,
// or nothing where there is no state. DataLossError for a damaged state, NotFoundError if the checkpoint is not there.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace tandem
