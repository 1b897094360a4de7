// Functions that make the nodes of a Dataset's graph. Internal to strategies/input.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "strategies/input/dataset.h"

namespace tandem::nodes {

// What was read of files to see the form of their records, so that no file is read again for that. Threads: any; nobody
// waits: what another thread is busy with counts as not known, and is read again.
class SampledFile {
 public:
  // Returns a record of any file that was read, else of this one; nothing for one without records.
  std::optional<Element> element(const std::string& name, const Dataset::FileReader& read);
  // Hands over the records of a file that was read, once; then they are dropped, whichever file was asked for.
  std::optional<std::vector<Element>> take(const std::string& name);

 private:
  class Turn;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::optional<Element> element_;
  std::string name_;  // of the file whose records these are
  std::vector<Element> records_;
};

NodePtr range(std::int64_t start, std::int64_t stop, std::int64_t step);
NodePtr slices(StructurePtr structure, std::vector<HostTensor> arrays);
NodePtr elements(std::vector<Element> elements);
NodePtr generator(std::function<Dataset::Generator()> start, ElementSpec spec);
// Readers that share `sampled` read files of one form; null: this one alone.
NodePtr reader(std::vector<std::string> names, Dataset::FileReader read, std::shared_ptr<SampledFile> sampled = {});

NodePtr zip(std::vector<NodePtr> inputs);
NodePtr concatenate(NodePtr first, NodePtr second);
NodePtr map(NodePtr input, Dataset::Mapping function);
NodePtr filter(NodePtr input, Dataset::Predicate keep);
NodePtr unique(NodePtr input);
NodePtr flat_map(NodePtr input, Dataset::DatasetFunction function);
NodePtr interleave(NodePtr input, Dataset::DatasetFunction function, std::int64_t cycle, std::int64_t block);

NodePtr batch(NodePtr input, std::int64_t size, bool drop_remainder);
NodePtr unbatch(NodePtr input);
NodePtr rebatch(NodePtr input, std::vector<std::int64_t> sizes, bool drop_remainder);
NodePtr legacy_rebatch(NodePtr input, std::int64_t pieces);

NodePtr shuffle(NodePtr input, std::uint64_t seed, bool reshuffle_each_iteration, std::int64_t buffer_size);
NodePtr cache(NodePtr input);
NodePtr repeat(NodePtr input, std::int64_t count);
NodePtr take(NodePtr input, std::int64_t count);
NodePtr skip(NodePtr input, std::int64_t count);
NodePtr prefetch(NodePtr input, std::int64_t buffer_size);
NodePtr assert_cardinality(NodePtr input, std::int64_t count);
NodePtr options(NodePtr input, DatasetOptions options);
std::optional<DatasetOptions> options_of(const DatasetNode& node);  // nothing for nodes without options

// With `must_not_be_empty`, fewer elements than shards are an InvalidArgumentError in the shards that have elements.
NodePtr shard(NodePtr input, std::int64_t num_shards, std::int64_t index, bool must_not_be_empty);
bool is_shard_hint(const DatasetNode& node);

}  // namespace tandem::nodes
