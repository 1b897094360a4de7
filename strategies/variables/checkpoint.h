// Saves variables to a file and restores them, under the same strategy or another. A mirrored variable is saved as its
// component 0, a sync-on-read variable as its aggregated value, a sharded variable as a whole; docs/checkpoints.md
// describes the file.
//
// save() and restore() are called outside run(), in a cross-replica context or in the default state: RuntimeError in a
// replica or update context, where every replica would write the file. In a multi-worker strategy every worker calls
// them, since reading a variable may take all workers. One worker writes: writes() says which.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/variables/sharded_variable.h"
#include "strategies/variables/variable.h"

namespace tandem {

class Strategy;
class Worker;

class Checkpoint {
 public:
  explicit Checkpoint(Worker& worker) : worker_(worker) {}
  Worker& worker() const { return worker_; }
  // ValueError for a name that the checkpoint has already.
  void add(const std::string& name, const std::shared_ptr<Variable>& variable);
  void add(const std::string& name, const ShardedVariable& variable);
  // Adds anything that is a tensor when it is saved.
  struct Saveable {
    DType dtype;
    Shape shape;
    const Strategy* strategy;       // of its parts: see writes()
    std::function<Tensor()> saved;  // on the host's device
    std::function<void(const Tensor&)> restore;
    std::string explanation{};   // of its shape, for the error about another one
    bool has_any_shape = false;  // what is saved tells its own, instead of `shape`
  };
  void add(const std::string& name, Saveable saveable);

  // Writes a new file beside `path` and renames it when it is complete, so that a crash leaves the old file or the new
  // one. UnknownError when the file system refuses, RuntimeError where the engine carries no values.
  void save(const std::string& path) const;
  // NotFoundError without such a file or for a variable that is not in it, DataLossError for a damaged file,
  // UnknownError for one that cannot be read, ValueError for another shape or element type. Everything is checked
  // before the first variable changes.
  void restore(const std::string& path) const;

  // Whether this worker is the one that writes. It is decided once for the whole checkpoint, by should_checkpoint() of
  // all strategies that have a variable in it. Variables of the default strategy, created outside every scope, exist in
  // each worker's program and have no say, unless there are no others: then the strategy decides in whose scope the
  // call is made and, outside every scope, the chief writes, or task 0 of its job where the cluster has no chief.
  bool writes() const;
  // RuntimeError, naming `call` ("CheckpointManager::save() of 'model'"), inside run() and update().
  static void require_outside_run(const std::string& call);

 private:
  Worker& worker_;
  std::map<std::string, Saveable> variables_;
};

// A checkpoint in memory, for variables that are created later.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& path);  // errors as restore()
  struct Entry {
    DType dtype = DType::f32;
    Shape shape{};
    std::size_t offset = 0;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry& entry(const std::string& name) const;  // NotFoundError
  const std::byte* bytes(const Entry& entry) const { return contents_->data() + entry.offset; }
  // For VariableSpec::initial_value.
  std::function<double(std::int64_t)> initial_value(const std::string& name) const;

 private:
  std::shared_ptr<const std::vector<std::byte>> contents_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tandem
