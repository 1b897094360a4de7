#include "strategies/variables/sharded_variable.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/gather.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/strategy.h"
#include "strategies/values/shapes.h"

namespace tandem {

ShardedVariable::ShardedVariable(std::vector<std::shared_ptr<Variable>> shards, std::string name)
    : shards_(std::move(shards)), name_(std::move(name)) {
  if (shards_.empty()) throw TypeError("a sharded variable of no variables");
  for (const std::shared_ptr<Variable>& shard : shards_) {
    if (!shard) throw TypeError("a sharded variable is made of variables; one of them is none");
    const Shape& first = shards_.front()->shape();
    if (shard->dtype() != dtype()) {
      throw ValueError(
          fmt::format("shards of types {} and {}", tandem::name_of(dtype()), tandem::name_of(shard->dtype())));
    }
    const bool has_rows = shard->shape().rank() == first.rank() && (shards_.size() == 1 || first.rank() > 0);
    if (!has_rows || (first.rank() > 0 && with_dimension(shard->shape(), 0, 0) != with_dimension(first, 0, 0))) {
      throw ValueError(
          fmt::format("shards of shapes {} and {}: only axis 0 may differ", first.text(), shard->shape().text()));
    }
  }
}

Shape ShardedVariable::shape() const {
  const Shape& first = shards_.front()->shape();
  if (first.rank() == 0) return first;
  std::int64_t rows = 0;
  for (const auto& shard : shards_) rows += shard->shape()[0];
  return with_dimension(first, 0, rows);
}

std::vector<std::int64_t> ShardedVariable::row_offsets() const {
  std::vector<std::int64_t> offsets;
  std::int64_t row = 0;
  for (const auto& shard : shards_) {
    offsets.push_back(row);
    row += shard->shape().rank() == 0 ? 0 : shard->shape()[0];
  }
  return offsets;
}

ShardedVariable& ShardedVariable::change(Change change, const Value& value) {
  const std::vector<std::int64_t> offsets = row_offsets();
  const auto apply = [change](Variable& shard, const Value& part) {
    if (change == Change::assign) shard.assign(part);
    if (change == Change::add) shard.assign_add(part);
    if (change == Change::subtract) shard.assign_sub(part);
  };
  if (!value.is(ValueKind::number) && value.tensor().shape() != shape()) {
    throw ValueError(fmt::format("a value of shape {} for sharded variable '{}' of shape {}",
                                 value.tensor().shape().text(), name(), shape().text()));
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const bool is_whole = value.is(ValueKind::number) || shards_.size() == 1;
    apply(*shards_[i], is_whole ? value : Value(value.tensor().slice(offsets[i], shards_[i]->shape()[0])));
  }
  return *this;
}

std::pair<std::size_t, std::int64_t> ShardedVariable::shard_of(std::int64_t row) const {
  const std::vector<std::int64_t> offsets = row_offsets();
  for (std::size_t i = shards_.size(); i-- > 0;) {
    if (row >= offsets[i] && row < offsets[i] + shards_[i]->shape()[0]) return {i, row - offsets[i]};
  }
  throw InvalidArgumentError(fmt::format("row {} of sharded variable '{}' of shape {}", row, name(), shape().text()));
}

ShardedVariable& ShardedVariable::scatter(Worker& worker, kernel::Scatter operation, const IndexedSlices& slices) {
  const std::vector<double> rows = host_values(worker, slices.indices);
  if (rows.empty() && slices.indices.element_count() > 0) {
    throw RuntimeError("a sharded variable's scatter needs values to know its shards");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [shard, row] = shard_of(static_cast<std::int64_t>(rows[i]));
    Device& device = slices.values.device();
    const auto local = static_cast<double>(row);
    const Tensor index =
        copy_on(device, host_tensor(worker.cpu(), DType::i64, {1}, [local](std::int64_t) { return local; }));
    shards_[shard]->scatter(operation,
                            {slices.values.slice(static_cast<std::int64_t>(i), 1), index, shards_[shard]->shape()});
  }
  return *this;
}

Tensor ShardedVariable::concatenated_on(Device& device) const {
  std::vector<Tensor> parts;
  for (const auto& shard : shards_) parts.push_back(copy_on(device, shard->read()));
  return parts.size() == 1 ? parts.front() : concatenated(device, parts, 0);
}

Tensor ShardedVariable::lookup(Device& device, const std::vector<std::int64_t>& ids) const {
  std::vector<Tensor> values;
  for (const auto& shard : shards_) values.push_back(shard->read());
  Tensor rows = device.allocate(dtype(), with_dimension(shape(), 0, static_cast<std::int64_t>(ids.size())));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [shard, row] = shard_of(ids[i]);
    device.compute_stream().wait(values[shard].device().compute_stream().record());
    device.compute_stream().copy(rows.slice(static_cast<std::int64_t>(i), 1), values[shard].slice(row, 1));
  }
  return rows;
}

ShardedVariable make_sharded_variable(Strategy& strategy, const VariableSpec& spec, const Partitioner& partitioner) {
  const std::vector<std::int64_t> rows =
      partitioner ? shard_sizes(partitioner, spec.shape, spec.dtype) : std::vector<std::int64_t>{};
  if (rows.empty()) return ShardedVariable({strategy.create_variable(spec)}, spec.name);
  std::vector<std::shared_ptr<Variable>> shards;
  std::int64_t first = 0;
  const std::int64_t width = spec.shape[0] == 0 ? 0 : spec.shape.element_count() / spec.shape[0];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    VariableSpec shard = spec;
    shard.name = fmt::format("{}/part_{}", spec.name, i);
    shard.shape = with_dimension(spec.shape, 0, rows[i]);
    if (spec.initial_value) {
      shard.initial_value = [whole = spec.initial_value, offset = first * width](std::int64_t element) {
        return whole(offset + element);
      };
    }
    shards.push_back(strategy.create_variable(shard));
    first += rows[i];
  }
  return ShardedVariable(std::move(shards), spec.name);
}

}  // namespace tandem
