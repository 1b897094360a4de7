// tf.data.Dataset: a recipe for a sequence of elements on the host.
//
// A Dataset is an immutable graph; copies share it, and every call gives a new one. Deterministic: equal graphs give
// equal elements. Functions given to it must be pure: they may be called more often than there are elements, to see
// what they return. Threads: a Dataset may be shared; an iterator has one user.
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

 private:
  NodePtr node_;  // outlives what iterates over it
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

  // --- Sources. Numbers from `start` up to `stop`, which is left out, as i64 scalars.
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
  // The records of the files, one after the other. Files of the first can be dealt to workers; the second is one
  // reading operation, whose list of names nothing outside can change.
  static Dataset read_files(const std::vector<std::string>& names, FileReader read);
  static Dataset raw_reader(std::vector<std::string> names, FileReader read);
  static Dataset zip(const std::vector<Dataset>& datasets);  // tuples; ends with the shortest. ValueError for none

  // --- From elements to elements.
  Dataset map(Mapping function) const;
  Dataset filter(Predicate keep) const;
  Dataset unique() const;  // leaves out what was there before
  Dataset flat_map(DatasetFunction function) const;
  // The elements of `cycle_length` datasets in turns, `block_length` of each. ValueError below 1.
  Dataset interleave(DatasetFunction function, std::int64_t cycle_length, std::int64_t block_length = 1) const;
  Dataset concatenate(const Dataset& next) const;

  // --- Batches. ValueError for sizes below 1.
  Dataset batch(std::int64_t size, bool drop_remainder = false) const;
  Dataset unbatch() const;
  // Batches of these sizes in turn, of the rows of the input's batches one after the other. A size may be 0.
  Dataset rebatch(std::vector<std::int64_t> sizes, bool drop_remainder = false) const;
  // Each batch of b rows in `pieces` pieces of ceil(b / pieces) rows; late ones may be empty.
  Dataset legacy_rebatch(std::int64_t pieces) const;

  // --- Order and number.
  // A buffer of kAll shuffles everything at once (ValueError for an infinite dataset). With `reshuffle_each_iteration`
  // the order changes in every repetition and with every iteration that shares a memory.
  Dataset shuffle(std::uint64_t seed, bool reshuffle_each_iteration = true, std::int64_t buffer_size = kAll) const;
  Dataset cache() const;  // the first complete iteration's elements, again in those that share its memory
  Dataset repeat(std::int64_t count = kForever) const;
  Dataset take(std::int64_t count) const;  // kAll: everything
  Dataset skip(std::int64_t count) const;  // kAll: everything
  // Elements index, index + num_shards, ... InvalidArgumentError for an index that is no shard's.
  Dataset shard(std::int64_t num_shards, std::int64_t index) const;
  Dataset prefetch(std::int64_t buffer_size) const;      // for the place where it stands: nothing here runs ahead
  Dataset assert_cardinality(std::int64_t count) const;  // InvalidArgumentError at the end when there were others
  Dataset with_options(DatasetOptions options) const;

  // --- What is known of it.
  DatasetOptions options() const;  // the last ones given, else the defaults
  std::int64_t cardinality() const { return node_->cardinality(); }
  ElementSpec element_spec() const { return node_->spec(); }
  // From the start. Iterations with one memory know of each other: see shuffle() and cache().
  DatasetIterator iterator(const MemoryPtr& memory = std::make_shared<IterationMemory>()) const {
    return {node_, memory};
  }

  explicit Dataset(NodePtr node) : node_(std::move(node)) {}
  const NodePtr& node() const { return node_; }

 private:
  NodePtr node_;
};

}  // namespace tandem
