// tf.distribute's ShardedVariable: one variable in shards along axis 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "strategies/cluster/partitioners.h"
#include "strategies/variables/variable.h"

namespace tandem {

class ShardedVariable {
 public:
  // The shards in order. TypeError for none or a null one; ValueError where element types, trainability or the shapes
  // beyond axis 0 differ.
  explicit ShardedVariable(std::vector<std::shared_ptr<Variable>> shards, std::string name = "ShardedVariable");

  const std::string& name() const { return name_; }
  const std::vector<std::shared_ptr<Variable>>& variables() const { return shards_; }
  bool is_sharded() const { return shards_.size() > 1; }
  Shape shape() const;
  DType dtype() const { return shards_.front()->dtype(); }
  std::vector<std::int64_t> row_offsets() const;  // of each shard

  // Split along axis 0; numbers go to every shard. ValueError for a value of another shape.
  ShardedVariable& assign(const Value& value) { return change(Change::assign, value); }
  ShardedVariable& assign_add(const Value& value) { return change(Change::add, value); }
  ShardedVariable& assign_sub(const Value& value) { return change(Change::subtract, value); }
  // By shard. The indices are read by the host: InvalidArgumentError for a row outside, RuntimeError where the engine
  // carries no values.
  ShardedVariable& scatter(Worker& worker, kernel::Scatter operation, const IndexedSlices& slices);

  // All shards, one after the other, on `device`.
  Tensor concatenated_on(Device& device) const;
  // tf.nn.embedding_lookup: the rows of these ids, on `device`. InvalidArgumentError for an id outside.
  Tensor lookup(Device& device, const std::vector<std::int64_t>& ids) const;

 private:
  ShardedVariable& change(Change change, const Value& value);
  std::pair<std::size_t, std::int64_t> shard_of(std::int64_t row) const;

  std::vector<std::shared_ptr<Variable>> shards_;
  std::string name_;
};

// As many shards as the partitioner says (none: one), named "<name>/part_<i>".
ShardedVariable make_sharded_variable(Strategy& strategy, const VariableSpec& spec, const Partitioner& partitioner);

}  // namespace tandem
