#include "strategies/input/autoshard.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/input/nodes.h"

namespace tandem {
namespace {

struct Shard {
  std::int64_t count, index;
};

bool calls_for_datasets(const DatasetNode& node) {
  return node.kind() == DatasetOp::flat_map || node.kind() == DatasetOp::interleave;
}

// The nodes for which sharding the input shards the elements, as TensorFlow lists them.
bool passes_through(const DatasetNode& node) {
  switch (node.kind()) {
    case DatasetOp::batch:
    case DatasetOp::cache:
    case DatasetOp::filter:
    case DatasetOp::map:
    case DatasetOp::options:
    case DatasetOp::prefetch:
    case DatasetOp::rebatch:
    case DatasetOp::legacy_rebatch:
    case DatasetOp::repeat:
    case DatasetOp::shard:
    case DatasetOp::shuffle:
    case DatasetOp::skip:
    case DatasetOp::take:
      return true;
    default:
      return false;
  }
}

bool is_source_without_files(const DatasetNode& node) {
  return node.kind() == DatasetOp::range || node.kind() == DatasetOp::slices || node.kind() == DatasetOp::elements ||
         node.kind() == DatasetOp::generator;
}

bool function_reads(const DatasetNode& node);

bool reads(const DatasetNode& node) {
  if (node.kind() == DatasetOp::reader || (calls_for_datasets(node) && function_reads(node))) return true;
  for (const NodePtr& input : node.inputs()) {
    if (reads(*input)) return true;
  }
  return false;
}

bool function_reads(const DatasetNode& node) {
  const NodePtr made = node.sample_of_function();
  return made && reads(*made);
}

// A shuffle before the shard would give the workers shards of different orders, so it moves behind the shard.
NodePtr without_shuffles(const NodePtr& node, NodePtr& shuffle) {
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(without_shuffles(input, shuffle));
  if (node->kind() != DatasetOp::shuffle) return inputs.empty() ? node : node->with_inputs(std::move(inputs));
  if (!shuffle) shuffle = node;
  return inputs.front();
}

NodePtr shard_files(const NodePtr& files, Shard shard) {
  NodePtr shuffle;
  const NodePtr bare = without_shuffles(files, shuffle);
  NodePtr sharded = nodes::shard(bare, shard.count, shard.index, true);
  return shuffle ? shuffle->with_inputs({std::move(sharded)}) : sharded;
}

bool is_dataset_of_datasets(const DatasetNode& node) {
  if (node.kind() != DatasetOp::elements) return false;
  const auto element = node.sample();
  return element && element->is_dataset();
}

// Shards the elements of the flattened list, if a list of datasets is flattened and then interleaved. Returns null for
// any other chain of nodes.
NodePtr shard_flattened(const NodePtr& node, Shard shard) {
  if (calls_for_datasets(*node) && is_dataset_of_datasets(node->input())) return shard_files(node, shard);
  if (!passes_through(*node)) return nullptr;
  NodePtr input = shard_flattened(node->inputs().front(), shard);
  return input ? node->with_inputs({std::move(input)}) : nullptr;
}

[[noreturn]] void throw_not_found(std::string_view what) {
  throw NotFoundError(
      fmt::format("no files to shard: {}. Choose the auto-shard policy DATA or OFF for this dataset", what));
}

NodePtr shard_by_file(const NodePtr& node, Shard shard) {
  if (node->kind() == DatasetOp::assert_cardinality) return shard_by_file(node->inputs().front(), shard);
  if (is_source_without_files(*node)) throw_not_found("the elements come from memory");
  if (node->kind() == DatasetOp::zip || node->kind() == DatasetOp::concatenate) {
    std::vector<NodePtr> inputs;
    for (const NodePtr& input : node->inputs()) inputs.push_back(shard_by_file(input, shard));
    return node->with_inputs(std::move(inputs));
  }
  const bool calls = calls_for_datasets(*node);
  if (calls) {
    if (NodePtr input = shard_flattened(node->inputs().front(), shard)) return node->with_inputs({std::move(input)});
  }
  if ((calls || passes_through(*node)) && function_reads(*node)) {
    return node->with_inputs({shard_files(node->inputs().front(), shard)});
  }
  if (node->kind() == DatasetOp::reader) throw_not_found("a reader was given a fixed list of names");
  if (!calls && !passes_through(*node)) throw_not_found("an operation in between may mix the elements of files");
  return node->with_inputs({shard_by_file(node->inputs().front(), shard)});
}

NodePtr shard_by_data(const NodePtr& node, Shard shard, std::int64_t num_replicas) {
  if (node->kind() == DatasetOp::prefetch || node->kind() == DatasetOp::options) {
    return node->with_inputs({shard_by_data(node->inputs().front(), shard, num_replicas)});
  }
  if (node->kind() != DatasetOp::rebatch) return nodes::shard(node, shard.count, shard.index, true);
  if (num_replicas < 1) {
    throw InvalidArgumentError(fmt::format("a rebatch for {} replicas, must be at least 1", num_replicas));
  }
  return nodes::shard(nodes::legacy_rebatch(node->inputs().front(), num_replicas), shard.count, shard.index, true);
}

NodePtr shard_by_hint(const NodePtr& node, Shard shard) {
  if (node->inputs().empty()) return node;
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(shard_by_hint(input, shard));
  if (nodes::is_shard_hint(*node)) return nodes::shard(std::move(inputs.front()), shard.count, shard.index, true);
  return node->with_inputs(std::move(inputs));
}

void check_arguments(std::int64_t num_shards, std::int64_t index, std::int64_t num_replicas) {
  if (num_shards < 1 || index < 0 || index >= num_shards || num_replicas < 0) {
    throw InvalidArgumentError(
        fmt::format("shard {} of {} for {} replicas: the index must be from 0 and below the number of shards", index,
                    num_shards, num_replicas));
  }
}

}  // namespace

Sharded auto_shard(const Dataset& dataset, std::int64_t num_shards, std::int64_t index, std::int64_t num_replicas) {
  check_arguments(num_shards, index, num_replicas);
  const Shard shard{num_shards, index};
  const AutoShardPolicy policy = dataset.options().auto_shard_policy;
  const auto by_data = [&] { return Dataset(shard_by_data(dataset.node(), shard, num_replicas)); };
  switch (policy) {
    case AutoShardPolicy::off:
      return {dataset, policy};
    case AutoShardPolicy::file:
      return {num_shards == 1 ? dataset : Dataset(shard_by_file(dataset.node(), shard)), policy};
    case AutoShardPolicy::data:
      return {by_data(), policy};
    case AutoShardPolicy::hint:
      return {Dataset(shard_by_hint(dataset.node(), shard)), policy};
    case AutoShardPolicy::automatic:
      break;
  }
  try {
    return {Dataset(shard_by_file(dataset.node(), shard)), AutoShardPolicy::file};
  } catch (const NotFoundError&) {
    return {by_data(), AutoShardPolicy::data};
  }
}

Dataset auto_shard_v1(const Dataset& dataset, std::int64_t num_shards, std::int64_t index) {
  check_arguments(num_shards, index, 1);
  try {
    return Dataset(shard_by_file(dataset.node(), {num_shards, index}));
  } catch (const NotFoundError&) {
    return dataset;
  }
}

}  // namespace tandem
