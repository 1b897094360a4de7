// The graph behind a Dataset: immutable nodes, each making its elements from those of its inputs.
//
// Internal to strategies/input; users see Dataset. Threads: nodes and memories may be shared; an iterator has one user
// at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/input/element.h"

namespace tandem {

inline constexpr std::int64_t kInfiniteCardinality = -1;
inline constexpr std::int64_t kUnknownCardinality = -2;
inline constexpr std::int64_t kUnknownBatchSize = -1;

class DatasetNode;
class Monitor;
using NodePtr = std::shared_ptr<const DatasetNode>;

enum class DatasetOp : std::uint8_t {
  range,
  slices,
  elements,
  generator,
  reader,
  zip,
  concatenate,
  map,
  filter,
  unique,
  flat_map,
  interleave,
  batch,
  unbatch,
  rebatch,
  legacy_rebatch,
  shuffle,
  cache,
  repeat,
  take,
  skip,
  shard,
  prefetch,
  options,
  assert_cardinality
};

// What one iteration passes on to the next iteration over the same nodes: how often each node was shuffled, and what it
// cached. Threads: a memory made in a run may be used by all tasks of the run, which it must not outlive; others have
// one user.
class IterationMemory {
 public:
  IterationMemory();
  ~IterationMemory();
  using Elements = std::shared_ptr<const std::vector<Element>>;
  std::uint64_t next_shuffle(const DatasetNode* node);
  Elements cached(const DatasetNode* node);  // null before keep()
  void keep(const DatasetNode* node, Elements elements);

 private:
  class Lock;
  std::unique_ptr<Monitor> monitor_;  // guards the rest; null outside of a run
  std::map<const DatasetNode*, std::uint64_t> shuffles_;
  std::map<const DatasetNode*, Elements> cached_;
};
using MemoryPtr = std::shared_ptr<IterationMemory>;

// An iterator gives nothing after the last element, however often it is asked. The nodes must outlive it.
class ElementIterator {
 public:
  virtual ~ElementIterator() = default;
  std::optional<Element> next() {
    if (has_ended_) return std::nullopt;
    std::optional<Element> element = produce();
    has_ended_ = !element;
    return element;
  }
  // Passes over the next elements, as next() would. Returns how many there were: fewer than `count` at the end only.
  std::int64_t skip(std::int64_t count) {
    if (has_ended_ || count <= 0) return 0;
    const std::int64_t skipped = pass_over(count);
    has_ended_ = skipped < count;
    return skipped;
  }

 private:
  virtual std::optional<Element> produce() = 0;
  virtual std::int64_t pass_over(std::int64_t count) {
    std::int64_t skipped = 0;
    while (skipped < count && produce()) ++skipped;
    return skipped;
  }
  bool has_ended_ = false;
};
using IteratorPtr = std::unique_ptr<ElementIterator>;

// An iterator over batches of one size, without end, that can make some rows of a batch without the others. A worker
// among a thousand needs a thousandth of each batch.
class RowIterator : public ElementIterator {
 public:
  virtual std::int64_t rows_of_batch() const = 0;
  virtual void begin_batch() = 0;
  // Passes over rows of the batch, or makes a batch of them. Those of one batch must add up to its size.
  virtual void skip_rows(std::int64_t count) = 0;
  virtual Element take_rows(std::int64_t count) = 0;  // at least one
};

// Makes an iterator of a function object that returns the next element.
template <typename Function>
IteratorPtr make_iterator(Function function) {
  class Iterator final : public ElementIterator {
   public:
    explicit Iterator(Function f) : function_(std::move(f)) {}

   private:
    std::optional<Element> produce() override { return function_(); }
    Function function_;
  };
  return std::make_unique<Iterator>(std::move(function));
}

// The defaults suit a node that passes on the elements of its only input.
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;
  DatasetOp kind() const { return kind_; }
  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const DatasetNode& input() const { return *inputs_.front(); }
  virtual NodePtr with_inputs(std::vector<NodePtr> inputs) const = 0;  // a copy that reads others

  virtual IteratorPtr iterate(const MemoryPtr& memory) const { return input().iterate(memory); }
  virtual ElementSpec spec() const { return input().spec(); }
  virtual std::int64_t cardinality() const { return input().cardinality(); }
  // The size of the batches before this node's end, or kUnknownBatchSize.
  virtual std::int64_t batch_size() const { return kUnknownBatchSize; }
  // One of the elements that this node can give, to see its form; nothing if there is none.
  virtual std::optional<Element> sample() const;
  // The number of elements, for nodes with random access.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
  virtual Element at(std::int64_t index) const;
  // Whether iterators pass over elements without making them, and all elements have the same shapes and types.
  virtual bool skips_unmade() const { return false; }
  // One of the datasets that the node's function makes; null for other nodes.
  virtual NodePtr sample_of_function() const { return nullptr; }

 protected:
  DatasetNode(DatasetOp kind, std::vector<NodePtr> inputs) : kind_(kind), inputs_(std::move(inputs)) {}
  DatasetNode(const DatasetNode&) = default;
  std::vector<NodePtr>& mutable_inputs() { return inputs_; }

 private:
  DatasetOp kind_;
  std::vector<NodePtr> inputs_;
};

template <typename Node>
class NodeOf : public DatasetNode {
 public:
  NodePtr with_inputs(std::vector<NodePtr> inputs) const override {
    auto copy = std::make_shared<Node>(static_cast<const Node&>(*this));
    static_cast<NodeOf&>(*copy).mutable_inputs() = std::move(inputs);
    return copy;
  }

 protected:
  using DatasetNode::DatasetNode;
};

}  // namespace tandem
