// The graph behind a Dataset: immutable nodes, each making its elements from those of its inputs.
//
// Internal to strategies/input; users see Dataset. Threads: nodes may be shared; an iterator and a memory have one
// user.
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

// What passes from one iteration over the same nodes to the next: how often each was shuffled, and what was cached.
class IterationMemory {
 public:
  std::uint64_t next_shuffle(const DatasetNode* node) { return shuffles_[node]++; }
  std::shared_ptr<const std::vector<Element>>& cached(const DatasetNode* node) { return cached_[node]; }

 private:
  std::map<const DatasetNode*, std::uint64_t> shuffles_;
  std::map<const DatasetNode*, std::shared_ptr<const std::vector<Element>>> cached_;
};
using MemoryPtr = std::shared_ptr<IterationMemory>;

// Nothing after the last element, however often it is asked. The nodes must outlive it.
class ElementIterator {
 public:
  virtual ~ElementIterator() = default;
  std::optional<Element> next() {
    if (has_ended_) return std::nullopt;
    std::optional<Element> element = produce();
    has_ended_ = !element;
    return element;
  }

 private:
  virtual std::optional<Element> produce() = 0;
  bool has_ended_ = false;
};
using IteratorPtr = std::unique_ptr<ElementIterator>;

// An iterator from a function object that gives the next element.
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

// The defaults are those of a node that passes its only input's elements on.
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
  // Some element of those this node can give, to see its form; nothing if there is none.
  virtual std::optional<Element> sample() const;
  // Nodes with random access tell their number of elements.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
  virtual Element at(std::int64_t index) const;
  // Of nodes whose function makes datasets: one of those.
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
