// The nodes with several inputs: zip and concatenate.
#include <algorithm>

#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// Has the batch size that all inputs have in common, or none.
template <typename Node>
class SeveralInputs : public NodeOf<Node> {
 public:
  std::int64_t batch_size() const override {
    const std::int64_t size = this->input().batch_size();
    const bool all_agree = std::all_of(this->inputs().begin(), this->inputs().end(),
                                       [&](const NodePtr& node) { return node->batch_size() == size; });
    return all_agree ? size : kUnknownBatchSize;
  }

 protected:
  using NodeOf<Node>::NodeOf;
};

class Zip final : public SeveralInputs<Zip> {
 public:
  explicit Zip(std::vector<NodePtr> inputs) : SeveralInputs(DatasetOp::zip, std::move(inputs)) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    std::vector<IteratorPtr> from;
    for (const NodePtr& node : inputs()) from.push_back(node->iterate(memory));
    return make_iterator([from = std::move(from)]() -> std::optional<Element> {
      std::vector<Element> parts;
      for (const IteratorPtr& iterator : from) {
        auto element = iterator->next();
        if (!element) return std::nullopt;
        parts.push_back(*std::move(element));
      }
      return Element::tuple(parts);
    });
  }
  ElementSpec spec() const override {
    auto structure = std::make_shared<Structure>(Structure{.kind = Structure::Kind::tuple});
    ElementSpec all;
    for (const NodePtr& node : inputs()) {
      const ElementSpec spec = node->spec();
      structure->parts.push_back(*spec.structure);
      all.components.insert(all.components.end(), spec.components.begin(), spec.components.end());
    }
    all.structure = std::move(structure);
    return all;
  }
  std::int64_t cardinality() const override {
    std::int64_t least = kInfiniteCardinality;
    for (const NodePtr& node : inputs()) {
      const std::int64_t n = node->cardinality();
      if (n == kUnknownCardinality) return n;
      if (n != kInfiniteCardinality) least = least == kInfiniteCardinality ? n : std::min(least, n);
    }
    return least;
  }
  std::optional<Element> sample() const override {
    std::vector<Element> parts;
    for (const NodePtr& node : inputs()) {
      auto element = node->sample();
      if (!element) return std::nullopt;
      parts.push_back(*std::move(element));
    }
    return Element::tuple(parts);
  }
};

class Concatenate final : public SeveralInputs<Concatenate> {
 public:
  Concatenate(NodePtr first, NodePtr second)
      : SeveralInputs(DatasetOp::concatenate, {std::move(first), std::move(second)}) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([this, memory, from = IteratorPtr(), index = std::size_t{0}]() mutable {
      std::optional<Element> element;
      while (!element && index < inputs().size()) {
        if (!from) from = inputs()[index]->iterate(memory);
        element = from->next();
        if (element) break;
        from.reset();
        ++index;
      }
      return element;
    });
  }
  ElementSpec spec() const override {
    ElementSpec spec = inputs()[0]->spec();
    const ElementSpec other = inputs()[1]->spec();
    for (std::size_t c = 0; c < std::min(spec.components.size(), other.components.size()); ++c) {
      auto& dimensions = spec.components[c].dimensions;
      const auto& others = other.components[c].dimensions;
      for (std::size_t d = 0; d < std::min(dimensions.size(), others.size()); ++d) {
        if (dimensions[d] != others[d]) dimensions[d] = TensorSpec::kUnknown;
      }
    }
    return spec;
  }
  std::int64_t cardinality() const override {
    const std::int64_t a = inputs()[0]->cardinality(), b = inputs()[1]->cardinality();
    if (a == kInfiniteCardinality || b == kInfiniteCardinality) return kInfiniteCardinality;
    return a < 0 || b < 0 ? kUnknownCardinality : a + b;
  }
  std::optional<Element> sample() const override {
    auto element = inputs()[0]->sample();
    return element ? element : inputs()[1]->sample();
  }
};

}  // namespace

NodePtr zip(std::vector<NodePtr> inputs) {
  return std::make_shared<Zip>(std::move(inputs));
}
NodePtr concatenate(NodePtr first, NodePtr second) {
  return std::make_shared<Concatenate>(std::move(first), std::move(second));
}

}  // namespace tandem::nodes
