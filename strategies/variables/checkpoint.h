// Saves variables to a file and restores them, under the same strategy or another. A mirrored variable is saved as its
// component 0, a sync-on-read variable as its aggregated value, a sharded variable as a whole; docs/checkpoints.md
// describes the file.
//
// Calls are made in a cross-replica context. In a multi-worker strategy every worker makes them; only the worker whose
// should_checkpoint() is true writes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/variables/sharded_variable.h"
#include "strategies/variables/variable.h"

namespace tandem {

class Worker;

class Checkpoint {
 public:
  explicit Checkpoint(Worker& worker) : worker_(worker) {}
  // ValueError for a name that the checkpoint has already.
  void add(const std::string& name, const std::shared_ptr<Variable>& variable);
  void add(const std::string& name, const ShardedVariable& variable);

  // Writes a new file beside `path` and renames it when it is complete, so that a crash leaves the old file or the new
  // one. UnknownError when the file system refuses, RuntimeError where the engine carries no values.
  void save(const std::string& path) const;
  // NotFoundError without such a file or for a variable that is not in it, DataLossError for a damaged file, ValueError
  // for another shape or element type. Everything is checked before the first variable changes.
  void restore(const std::string& path) const;

 private:
  struct Saveable {
    DType dtype;
    Shape shape;
    bool writes;
    std::function<Tensor()> saved;
    std::function<void(const Tensor&)> restore;
  };
  void add(const std::string& name, Saveable saveable);

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
