#include "strategies/input/dataset.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/input/nodes.h"

namespace tandem {
namespace {

void check_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) throw ValueError(fmt::format("{} of {}, must be at least {}", what, value, least));
}

NodePtr slices_of(StructurePtr structure, std::vector<HostTensor> arrays) {
  if (arrays.empty()) throw ValueError("a dataset needs at least one array");
  for (const HostTensor& array : arrays) {
    if (array.rank() == 0) throw ValueError("a scalar has no rows to make a dataset of");
    if (array.rows() != arrays.front().rows()) {
      throw ValueError(fmt::format("the arrays of a dataset have {} and {} rows", arrays.front().rows(), array.rows()));
    }
  }
  return nodes::slices(std::move(structure), std::move(arrays));
}

}  // namespace

std::string_view name_of(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::automatic:
      return "AUTO";
    case AutoShardPolicy::file:
      return "FILE";
    case AutoShardPolicy::data:
      return "DATA";
    case AutoShardPolicy::off:
      return "OFF";
    case AutoShardPolicy::hint:
      return "HINT";
  }
  TANDEM_UNREACHABLE("a AutoShardPolicy outside its enumerators");
}

Dataset Dataset::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step == 0) throw ValueError("a range needs a step other than 0");
  return Dataset(nodes::range(start, stop, step));
}

Dataset Dataset::from_tensor_slices(std::vector<HostArray> arrays) {
  auto structure = std::make_shared<Structure>(Structure{.kind = Structure::Kind::tuple});
  structure->parts.resize(arrays.size());
  std::vector<HostTensor> tensors;
  for (HostArray& array : arrays) tensors.push_back(as_tensor(std::move(array)));
  return Dataset(slices_of(std::move(structure), std::move(tensors)));
}

Dataset Dataset::from_tensor_slices(const Element& nest) {
  return Dataset(slices_of(nest.structure(), nest.components()));
}

Dataset Dataset::from_elements(std::vector<Element> elements) {
  return Dataset(nodes::elements(std::move(elements)));
}

Dataset Dataset::from_datasets(const std::vector<Dataset>& datasets) {
  std::vector<Element> elements;
  for (const Dataset& dataset : datasets) elements.push_back(Element::of_dataset(dataset));
  return from_elements(std::move(elements));
}

Dataset Dataset::from_generator(std::function<Generator()> start, ElementSpec spec) {
  return Dataset(nodes::generator(std::move(start), std::move(spec)));
}

Dataset Dataset::list_files(const std::vector<std::string>& names) {
  return from_tensor_slices(HostTensor::vector(names));
}

Dataset Dataset::raw_reader(std::vector<std::string> names, FileReader read) {
  return Dataset(nodes::reader(std::move(names), std::move(read)));
}

Dataset Dataset::read_files(const std::vector<std::string>& names, FileReader read) {
  return list_files(names).flat_map(
      [read = std::move(read), sampled = std::make_shared<nodes::SampledFile>()](const Element& name) {
        return Dataset(nodes::reader({name.tensor().text()}, read, sampled));
      });
}

Dataset Dataset::zip(const std::vector<Dataset>& datasets) {
  if (datasets.empty()) throw ValueError("zip needs at least one dataset");
  std::vector<NodePtr> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(dataset.node());
  return Dataset(nodes::zip(std::move(inputs)));
}

Dataset Dataset::map(Mapping function) const {
  return Dataset(nodes::map(node_, std::move(function)));
}

Dataset Dataset::filter(Predicate keep) const {
  return Dataset(nodes::filter(node_, std::move(keep)));
}

Dataset Dataset::unique() const {
  return Dataset(nodes::unique(node_));
}

Dataset Dataset::flat_map(DatasetFunction function) const {
  return Dataset(nodes::flat_map(node_, std::move(function)));
}

Dataset Dataset::interleave(DatasetFunction function, std::int64_t cycle_length, std::int64_t block_length) const {
  check_at_least("a cycle length", cycle_length, 1);
  check_at_least("a block length", block_length, 1);
  return Dataset(nodes::interleave(node_, std::move(function), cycle_length, block_length));
}

Dataset Dataset::concatenate(const Dataset& next) const {
  return Dataset(nodes::concatenate(node_, next.node_));
}

Dataset Dataset::batch(std::int64_t size, bool drop_remainder) const {
  check_at_least("a batch size", size, 1);
  return Dataset(nodes::batch(node_, size, drop_remainder));
}

Dataset Dataset::unbatch() const {
  return Dataset(nodes::unbatch(node_));
}

Dataset Dataset::rebatch(std::vector<std::int64_t> sizes, bool drop_remainder) const {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    check_at_least("a batch size", size, 0);
    sum += size;
  }
  check_at_least("a sum of batch sizes", sum, 1);
  return Dataset(nodes::rebatch(node_, std::move(sizes), drop_remainder));
}

Dataset Dataset::legacy_rebatch(std::int64_t pieces) const {
  check_at_least("a number of pieces", pieces, 1);
  return Dataset(nodes::legacy_rebatch(node_, pieces));
}

Dataset Dataset::shuffle(std::uint64_t seed, bool reshuffle_each_iteration, std::int64_t buffer_size) const {
  if (buffer_size != kAll) check_at_least("a shuffle buffer", buffer_size, 1);
  if (buffer_size == kAll && cardinality() == kInfiniteCardinality) {
    throw ValueError(
        "an infinite dataset cannot be shuffled as a whole; give shuffle() a buffer size, or repeat later");
  }
  return Dataset(nodes::shuffle(node_, seed, reshuffle_each_iteration, buffer_size));
}

Dataset Dataset::cache() const {
  return Dataset(nodes::cache(node_));
}

Dataset Dataset::repeat(std::int64_t count) const {
  return Dataset(nodes::repeat(node_, count < 0 ? kForever : count));
}

Dataset Dataset::take(std::int64_t count) const {
  return Dataset(nodes::take(node_, count));
}

Dataset Dataset::skip(std::int64_t count) const {
  return Dataset(nodes::skip(node_, count));
}

Dataset Dataset::shard(std::int64_t num_shards, std::int64_t index) const {
  const bool is_hint = num_shards == kShardHint;
  if (!is_hint && (num_shards < 1 || index < 0 || index >= num_shards)) {
    throw InvalidArgumentError(fmt::format("shard {} of {}, must be from 0 and below the number", index, num_shards));
  }
  return Dataset(nodes::shard(node_, num_shards, index, false));
}

Dataset Dataset::prefetch(std::int64_t buffer_size) const {
  if (buffer_size < 0 && buffer_size != kAutotune) {
    throw ValueError(fmt::format("a prefetch buffer of {} elements", buffer_size));
  }
  constexpr std::int64_t kChosen = 2;  // one element is used while the other is made
  return Dataset(nodes::prefetch(node_, buffer_size == kAutotune ? kChosen : buffer_size));
}

Dataset Dataset::assert_cardinality(std::int64_t count) const {
  return Dataset(nodes::assert_cardinality(node_, count));
}

Dataset Dataset::with_options(DatasetOptions options) const {
  return Dataset(nodes::options(node_, options));
}

DatasetOptions Dataset::options() const {
  if (const auto given = nodes::options_of(*node_)) return *given;
  for (const NodePtr& input : node_->inputs()) {
    // Default options do not count as a choice, so another branch's choice is used.
    DatasetOptions found = Dataset(input).options();
    if (found.auto_shard_policy != AutoShardPolicy::automatic) return found;
  }
  return {};
}

}  // namespace tandem
