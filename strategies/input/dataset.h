// tf.data.Dataset: a recipe for a sequence of elements on the host.
//
// A Dataset is an immutable graph. Copies share it, and every call returns a new one. Equal graphs give equal elements.
// Functions given to a Dataset must be pure: they may be called more often than there are elements, to see the form of
// their results, and in other tasks (see prefetch). Threads: a Dataset may be shared; an iterator has one user.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/input/dataset_node.h"
#include "strategies/input/element.h"

namespace tandem {

enum class AutoShardPolicy : std::uint8_t { automatic, file, data, off, hint };
std::string_view name_of(AutoShardPolicy policy);  // "AUTO"

struct DatasetOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::automatic;
};

class DatasetIterator {
 public:
  DatasetIterator(NodePtr node, const MemoryPtr& memory) : node_(std::move(node)), elements_(node_->iterate(memory)) {}
  std::optional<Element> next() { return elements_->next(); }  // nothing after the last
  // Passes over the next elements, without making them where the nodes can. Returns how many there were.
  std::int64_t skip(std::int64_t count) { return elements_->skip(count); }

 private:
  NodePtr node_;  // must outlive elements_
  IteratorPtr elements_;
};

class Dataset {
 public:
  using Mapping = std::function<Element(const Element&)>;
  using Predicate = std::function<bool(const Element&)>;
  using DatasetFunction = std::function<Dataset(const Element&)>;
  using FileReader = std::function<std::vector<Element>(const std::string& name)>;
  using Generator = std::function<std::optional<Element>()>;  // nothing: the end

  static constexpr std::int64_t kForever = -1;
  static constexpr std::int64_t kAll = -1;
  static constexpr std::int64_t kShardHint = -1;  // see AutoShardPolicy::hint
  static constexpr std::int64_t kAutotune = -1;

  // --- Sources. range(): the numbers from `start` to `stop`, without `stop`, as i64 scalars.
  static Dataset range(std::int64_t stop) { return range(0, stop); }
  static Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
  // Element i is row i of every array or component. ValueError when they have different numbers of rows.
  static Dataset from_tensor_slices(std::vector<HostArray> arrays);  // elements are tuples
  static Dataset from_tensor_slices(const Element& nest);
  static Dataset from_tensors(Element element) { return from_elements({std::move(element)}); }
  static Dataset from_elements(std::vector<Element> elements);
  static Dataset from_datasets(const std::vector<Dataset>& datasets);  // a dataset of datasets: see flat_map
  // `start` is called for every iteration; what it returns is called for every element.
  static Dataset from_generator(std::function<Generator()> start, ElementSpec spec);
  static Dataset list_files(const std::vector<std::string>& names);  // text scalars
  // The records of the files, one file after another. Sharding can divide the files of read_files() among workers;
  // raw_reader() is one operation, whose list of names cannot be changed from outside.
  static Dataset read_files(const std::vector<std::string>& names, FileReader read);
  static Dataset raw_reader(std::vector<std::string> names, FileReader read);
  static Dataset zip(const std::vector<Dataset>& datasets);  // tuples; ends with the shortest. ValueError for none

  // --- From elements to elements.
  Dataset map(Mapping function) const;
  Dataset filter(Predicate keep) const;
  Dataset unique() const;  // leaves out elements that have come before
  Dataset flat_map(DatasetFunction function) const;
  // Takes `block_length` elements in turn from each of `cycle_length` datasets. ValueError below 1.
  Dataset interleave(DatasetFunction function, std::int64_t cycle_length, std::int64_t block_length = 1) const;
  Dataset concatenate(const Dataset& next) const;

  // --- Batches. ValueError for sizes below 1.
  Dataset batch(std::int64_t size, bool drop_remainder = false) const;
  Dataset unbatch() const;
  // Cuts the rows of the input's batches into batches of these sizes in turn. A size may be 0.
  Dataset rebatch(std::vector<std::int64_t> sizes, bool drop_remainder = false) const;
  // Cuts each batch of b rows into `pieces` pieces of ceil(b / pieces) rows. The last pieces may be empty.
  Dataset legacy_rebatch(std::int64_t pieces) const;

  // --- Order and number.
  // A buffer of kAll shuffles the whole dataset (ValueError for an infinite one). With `reshuffle_each_iteration` the
  // order changes with every repetition, and with every iteration that shares a memory.
  Dataset shuffle(std::uint64_t seed, bool reshuffle_each_iteration = true, std::int64_t buffer_size = kAll) const;
  Dataset cache() const;  // repeats the first complete iteration's elements in iterations that share its memory
  Dataset repeat(std::int64_t count = kForever) const;
  Dataset take(std::int64_t count) const;  // kAll: everything
  Dataset skip(std::int64_t count) const;  // kAll: everything
  // Takes the elements index, index + num_shards, ... InvalidArgumentError for an index that is no shard's.
  Dataset shard(std::int64_t num_shards, std::int64_t index) const;
  // Makes up to `buffer_size` elements before they are asked for, in a task that runs beside the consumer's; kAutotune
  // chooses the size, 0 makes none ahead. That task then calls the functions before it, with no strategy current. An
  // iterator that has begun must end before its worker's program does. Outside a run nothing is made ahead.
  Dataset prefetch(std::int64_t buffer_size) const;
  Dataset assert_cardinality(std::int64_t count) const;  // InvalidArgumentError once another number is found
  Dataset with_options(DatasetOptions options) const;

  // --- Properties.
  DatasetOptions options() const;  // the last ones given, else the defaults
  std::int64_t cardinality() const { return node_->cardinality(); }
  ElementSpec element_spec() const { return node_->spec(); }
  // Starts at the first element. Iterations with the same memory affect each other: see shuffle() and cache().
  DatasetIterator iterator(const MemoryPtr& memory = std::make_shared<IterationMemory>()) const {
    return {node_, memory};
  }

  explicit Dataset(NodePtr node) : node_(std::move(node)) {}
  const NodePtr& node() const { return node_; }

 private:
  NodePtr node_;
};

}  // namespace tandem
