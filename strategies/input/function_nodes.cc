// The nodes that call a user's function (map, filter, flat_map, interleave), and unique.
#include <algorithm>

#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// Dimension 0 stays unknown if it was unknown in the input and the function did not change it.
ElementSpec spec_of_mapped(const ElementSpec& input, const Element& before, const Element& after) {
  ElementSpec spec = spec_of(after);
  for (std::size_t i = 0; i < input.components.size() && i < before.components().size(); ++i) {
    const auto& dimensions = input.components[i].dimensions;
    if (dimensions.empty() || dimensions.front() != TensorSpec::kUnknown) continue;
    const std::int64_t rows = before.components()[i].rows();
    for (TensorSpec& component : spec.components) {
      if (!component.dimensions.empty() && component.dimensions.front() == rows) {
        component.dimensions.front() = TensorSpec::kUnknown;
      }
    }
  }
  return spec;
}

class Map final : public NodeOf<Map> {
 public:
  Map(NodePtr input, Dataset::Mapping function)
      : NodeOf(DatasetOp::map, {std::move(input)}), function_(std::move(function)) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([this, from = input().iterate(memory)]() -> std::optional<Element> {
      const auto element = from->next();
      if (!element) return std::nullopt;
      return function_(*element);
    });
  }
  ElementSpec spec() const override {
    const auto before = input().sample();
    return before ? spec_of_mapped(input().spec(), *before, function_(*before)) : input().spec();
  }
  std::optional<Element> sample() const override {
    const auto before = input().sample();
    if (!before) return std::nullopt;
    return function_(*before);
  }
  std::optional<std::int64_t> size() const override { return input().size(); }
  Element at(std::int64_t index) const override { return function_(input().at(index)); }
  NodePtr sample_of_function() const override {
    const auto element = sample();
    return element && element->is_dataset() ? element->dataset().node() : nullptr;
  }

 private:
  Dataset::Mapping function_;
};

class Filter final : public NodeOf<Filter> {
 public:
  Filter(NodePtr input, Dataset::Predicate keep)
      : NodeOf(DatasetOp::filter, {std::move(input)}), keep_(std::move(keep)) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([this, from = input().iterate(memory)] {
      auto element = from->next();
      while (element && !keep_(*element)) element = from->next();
      return element;
    });
  }
  std::int64_t cardinality() const override { return kUnknownCardinality; }
  std::int64_t batch_size() const override { return input().batch_size(); }

 private:
  Dataset::Predicate keep_;
};

class Unique final : public NodeOf<Unique> {
 public:
  explicit Unique(NodePtr input) : NodeOf(DatasetOp::unique, {std::move(input)}) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([from = input().iterate(memory), seen = std::vector<Element>()]() mutable {
      auto element = from->next();
      while (element && std::find(seen.begin(), seen.end(), *element) != seen.end()) element = from->next();
      if (element) seen.push_back(*element);
      return element;
    });
  }
  std::int64_t cardinality() const override { return kUnknownCardinality; }
};

// A flat_map is an interleave of one dataset at a time. A block of 0 elements ends with its dataset.
class Interleave final : public NodeOf<Interleave> {
 public:
  Interleave(DatasetOp kind, NodePtr input, Dataset::DatasetFunction function, std::int64_t cycle, std::int64_t block)
      : NodeOf(kind, {std::move(input)}), function_(std::move(function)), cycle_(cycle), block_(block) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([turns = Turns(*this, input().iterate(memory))]() mutable { return turns.next(); });
  }
  ElementSpec spec() const override {
    const NodePtr inner = sample_of_function();
    return inner ? inner->spec() : ElementSpec{};
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknownCardinality; }
  std::int64_t batch_size() const override {
    const NodePtr inner = sample_of_function();
    return inner ? inner->batch_size() : kUnknownBatchSize;
  }
  std::optional<Element> sample() const override {
    const auto from = input().iterate(std::make_shared<IterationMemory>());
    while (const auto element = from->next()) {
      if (auto found = function_(*element).node()->sample()) return found;
    }
    return std::nullopt;
  }
  NodePtr sample_of_function() const override {
    const auto element = input().sample();
    return element ? function_(*element).node() : nullptr;
  }

 private:
  // The open datasets, and which of them is next. Each has its own iteration memory, because the function has just made
  // it.
  class Turns {
   public:
    Turns(const Interleave& node, IteratorPtr from)
        : node_(node), from_(std::move(from)), open_(static_cast<std::size_t>(node.cycle_)) {}
    std::optional<Element> next() {
      do {
        std::optional<DatasetIterator>& current = open_[turn_];
        if (current) {
          if (auto element = current->next()) {
            if (++in_block_ == node_.block_) pass_on();
            return element;
          }
          current.reset();
          --open_count_;
          pass_on();
        } else {
          open_next(current);
        }
      } while (open_count_ > 0 || !has_input_ended_);
      return std::nullopt;
    }

   private:
    void pass_on() {
      in_block_ = 0;
      turn_ = (turn_ + 1) % open_.size();
    }
    void open_next(std::optional<DatasetIterator>& place) {
      const auto element = has_input_ended_ ? std::nullopt : from_->next();
      if (!element) {
        has_input_ended_ = true;
        return pass_on();
      }
      place.emplace(node_.function_(*element).iterator());
      ++open_count_;
    }

    const Interleave& node_;
    IteratorPtr from_;
    std::vector<std::optional<DatasetIterator>> open_;
    std::size_t turn_ = 0;
    std::int64_t in_block_ = 0;
    int open_count_ = 0;
    bool has_input_ended_ = false;
  };

  Dataset::DatasetFunction function_;
  std::int64_t cycle_, block_;
};

}  // namespace

NodePtr map(NodePtr input, Dataset::Mapping function) {
  return std::make_shared<Map>(std::move(input), std::move(function));
}
NodePtr filter(NodePtr input, Dataset::Predicate keep) {
  return std::make_shared<Filter>(std::move(input), std::move(keep));
}
NodePtr unique(NodePtr input) {
  return std::make_shared<Unique>(std::move(input));
}
NodePtr flat_map(NodePtr input, Dataset::DatasetFunction function) {
  return std::make_shared<Interleave>(DatasetOp::flat_map, std::move(input), std::move(function), 1, 0);
}
NodePtr interleave(NodePtr input, Dataset::DatasetFunction function, std::int64_t cycle, std::int64_t block) {
  return std::make_shared<Interleave>(DatasetOp::interleave, std::move(input), std::move(function), cycle, block);
}

}  // namespace tandem::nodes
