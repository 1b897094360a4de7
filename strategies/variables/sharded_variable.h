// tf.distribute's ShardedVariable: one variable divided into shards along axis 0.
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
  // Takes the shards in order. TypeError when there is none or one of them is null; ValueError when their element
  // types, or their shapes beyond axis 0, differ.
  explicit ShardedVariable(std::vector<std::shared_ptr<Variable>> shards, std::string name = "ShardedVariable");

  const std::string& name() const { return name_; }
  const std::vector<std::shared_ptr<Variable>>& variables() const { return shards_; }
  bool is_sharded() const { return shards_.size() > 1; }
  Shape shape() const;
  DType dtype() const { return shards_.front()->dtype(); }
  std::vector<std::int64_t> row_offsets() const;  // the first row of each shard

  // Divide the value along axis 0; a number goes to every shard. ValueError for a value of another shape.
  ShardedVariable& assign(const Value& value) { return change(Change::assign, value); }
  ShardedVariable& assign_add(const Value& value) { return change(Change::add, value); }
  ShardedVariable& assign_sub(const Value& value) { return change(Change::subtract, value); }
  // Changes each row in its shard. The host reads the indices to find the shards, which blocks the caller.
  // InvalidArgumentError for an index that names no row, RuntimeError where the engine carries no values.
  ShardedVariable& scatter(Worker& worker, kernel::Scatter operation, const IndexedSlices& slices);

  // The value of all shards, concatenated on `device`.
  Tensor concatenated_on(Device& device) const;
  // tf.nn.embedding_lookup: the rows with these ids, on `device`. InvalidArgumentError for an id that names no row.
  Tensor lookup(Device& device, const std::vector<std::int64_t>& ids) const;

 private:
  ShardedVariable& change(Change change, const Value& value);
  std::pair<std::size_t, std::int64_t> shard_of(std::int64_t row) const;

  std::vector<std::shared_ptr<Variable>> shards_;
  std::string name_;
};

// Creates a variable in as many shards as the partitioner says, named "<name>/part_<i>". Without a partitioner it is
// one variable named "<name>".
ShardedVariable make_sharded_variable(Strategy& strategy, const VariableSpec& spec, const Partitioner& partitioner);

}  // namespace tandem
