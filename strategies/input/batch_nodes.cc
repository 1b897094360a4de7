// The nodes that combine elements along a new axis, and that take batches apart.
#include "engine/worker.h"
#include "strategies/input/batch_rows.h"
#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

class Batch final : public NodeOf<Batch> {
 public:
  Batch(NodePtr input, std::int64_t size, bool drop_remainder)
      : NodeOf(DatasetOp::batch, {std::move(input)}), size_(size), drop_remainder_(drop_remainder) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    IteratorPtr from = input().iterate(memory);
    if (cardinality() == kInfiniteCardinality && input().skips_unmade()) {
      return std::make_unique<Endless>(std::move(from), size_);
    }
    return make_iterator([this, from = std::move(from)]() -> std::optional<Element> {
      const std::vector<Element> elements = taken(*from, size_);
      if (elements.empty() || (drop_remainder_ && static_cast<std::int64_t>(elements.size()) < size_)) {
        return std::nullopt;
      }
      count_input(static_cast<std::int64_t>(elements.size()));
      return stack_elements(elements);
    });
  }
  ElementSpec spec() const override { return input().spec().with_rows(drop_remainder_ ? size_ : TensorSpec::kUnknown); }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n < 0 ? n : (drop_remainder_ ? n : n + size_ - 1) / size_;
  }
  std::int64_t batch_size() const override { return size_; }
  std::optional<Element> sample() const override {
    const auto element = input().sample();
    if (!element) return std::nullopt;
    return stack_elements(std::vector<Element>(drop_remainder_ ? static_cast<std::size_t>(size_) : 1, *element));
  }

 private:
  // A part of a batch counts as the whole of it: a real pipeline makes the whole batch.
  class Endless final : public RowIterator {
   public:
    Endless(IteratorPtr from, std::int64_t size) : from_(std::move(from)), size_(size) {}
    std::int64_t rows_of_batch() const override { return size_; }
    void begin_batch() override { count_input(size_); }
    void skip_rows(std::int64_t count) override { from_->skip(count); }
    Element take_rows(std::int64_t count) override { return stack_elements(taken(*from_, count)); }

   private:
    std::optional<Element> produce() override {
      begin_batch();
      return take_rows(size_);
    }
    IteratorPtr from_;
    std::int64_t size_;
  };

  static std::vector<Element> taken(ElementIterator& from, std::int64_t count) {
    std::vector<Element> elements;
    while (static_cast<std::int64_t>(elements.size()) < count) {
      auto element = from.next();
      if (!element) break;
      elements.push_back(*std::move(element));
    }
    return elements;
  }
  static void count_input(std::int64_t rows) {
    if (Worker* worker = Task::current().worker()) worker->took_input(rows, 0);
  }

  std::int64_t size_;
  bool drop_remainder_;
};

class Unbatch final : public NodeOf<Unbatch> {
 public:
  explicit Unbatch(NodePtr input) : NodeOf(DatasetOp::unbatch, {std::move(input)}) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([from = input().iterate(memory), batch = std::optional<Element>(), row = std::int64_t{0},
                          rows = std::int64_t{0}]() mutable -> std::optional<Element> {
      while (row == rows) {
        batch = from->next();
        if (!batch) return std::nullopt;
        rows = rows_of(*batch);
        row = 0;
      }
      return row_of(*batch, row++);
    });
  }
  ElementSpec spec() const override {
    ElementSpec spec = input().spec();
    check_batched(spec);
    for (TensorSpec& component : spec.components) component.dimensions.erase(component.dimensions.begin());
    return spec;
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n > 0 ? kUnknownCardinality : n;
  }
  std::optional<Element> sample() const override {
    const auto batch = input().sample();
    if (!batch || rows_of(*batch) == 0) return std::nullopt;
    return row_of(*batch, 0);
  }

 private:
  static Element row_of(const Element& batch, std::int64_t row) {
    std::vector<HostTensor> components;
    for (const HostTensor& tensor : batch.components()) components.push_back(tensor.row(row));
    return {batch.structure(), std::move(components)};
  }
};

}  // namespace

NodePtr batch(NodePtr input, std::int64_t size, bool drop_remainder) {
  return std::make_shared<Batch>(std::move(input), size, drop_remainder);
}
NodePtr unbatch(NodePtr input) {
  return std::make_shared<Unbatch>(std::move(input));
}
}  // namespace tandem::nodes
