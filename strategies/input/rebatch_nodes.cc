// The nodes that cut batches into batches of other sizes.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/batch_rows.h"
#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// The batch dimension if all components have the same, else unknown.
std::int64_t static_rows(const ElementSpec& spec) {
  std::int64_t rows = TensorSpec::kUnknown;
  for (const TensorSpec& component : spec.components) {
    const std::int64_t here = component.dimensions.front();
    if (here == TensorSpec::kUnknown) continue;
    if (rows != TensorSpec::kUnknown && rows != here) {
      throw ValueError(fmt::format("the components of a batch have {} and {} rows, must be the same", rows, here));
    }
    rows = here;
  }
  return rows;
}

class Rebatch final : public NodeOf<Rebatch> {
 public:
  Rebatch(NodePtr input, std::vector<std::int64_t> sizes, bool drop_remainder)
      : NodeOf(DatasetOp::rebatch, {std::move(input)}), sizes_(std::move(sizes)), drop_remainder_(drop_remainder) {
    check_batched(spec_of_input());
  }
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([cutter = Cutter(*this, input().iterate(memory))]() mutable { return cutter.next(); });
  }
  ElementSpec spec() const override {
    const ElementSpec spec = spec_of_input();
    const bool is_one_size = std::all_of(sizes_.begin(), sizes_.end(), [&](auto size) { return size == sizes_[0]; });
    if (!is_one_size || spec.components.empty()) return spec.with_row_count(TensorSpec::kUnknown);
    const std::int64_t rows = static_rows(spec);
    const bool may_be_partial =
        !drop_remainder_ && (rows == TensorSpec::kUnknown || sizes_[0] == 0 || rows % sizes_[0] != 0);
    return spec.with_row_count(may_be_partial ? TensorSpec::kUnknown : sizes_[0]);
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n > 0 ? kUnknownCardinality : n;
  }

 private:
  ElementSpec spec_of_input() const { return input().spec(); }

  class Cutter {
   public:
    Cutter(const Rebatch& node, IteratorPtr from) : node_(node), from_(std::move(from)) {}
    std::optional<Element> next() {
      if (has_input_ended_) return std::nullopt;
      const std::int64_t wanted = node_.sizes_[size_index_];
      size_index_ = (size_index_ + 1) % node_.sizes_.size();
      if (wanted == 0) return nothing();
      std::vector<Element> pieces;
      const std::int64_t found = collect(wanted, pieces);
      if (found == 0 || (node_.drop_remainder_ && found < wanted)) return std::nullopt;
      if (pieces.size() == 1) return pieces.front();
      return concatenate_elements(pieces);
    }

   private:
    Element nothing() const {
      if (batch_) return slice_of(*batch_, 0, 0);
      return empty_element(node_.spec_of_input().with_row_count(TensorSpec::kUnknown));
    }
    std::int64_t collect(std::int64_t wanted, std::vector<Element>& pieces) {
      std::int64_t found = 0;
      while (found < wanted) {
        if (first_ == rows_) {
          batch_ = from_->next();
          has_input_ended_ = !batch_;
          if (!batch_) break;
          rows_ = rows_of(*batch_);
          first_ = 0;
        }
        const std::int64_t count = std::min(wanted - found, rows_ - first_);
        if (count > 0) pieces.push_back(slice_of(*batch_, first_, count));
        found += count;
        first_ += count;
      }
      return found;
    }

    const Rebatch& node_;
    IteratorPtr from_;
    std::optional<Element> batch_;
    std::int64_t first_ = 0, rows_ = 0;  // the batch's first row not yet given, and its number of rows
    std::size_t size_index_ = 0;
    bool has_input_ended_ = false;
  };

  std::vector<std::int64_t> sizes_;
  bool drop_remainder_;
};

class LegacyRebatch final : public NodeOf<LegacyRebatch> {
 public:
  LegacyRebatch(NodePtr input, std::int64_t pieces)
      : NodeOf(DatasetOp::legacy_rebatch, {std::move(input)}), pieces_(pieces) {
    check_batched(this->input().spec());
  }
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    IteratorPtr from = input().iterate(memory);
    if (dynamic_cast<RowIterator*>(from.get()) != nullptr) {
      return std::make_unique<Pieces>(std::move(from), input().spec(), pieces_);
    }
    return make_iterator([this, from = std::move(from), batch = std::optional<Element>(),
                          piece = std::int64_t{0}]() mutable -> std::optional<Element> {
      if (piece == 0) batch = from->next();
      if (!batch) return std::nullopt;
      Element cut = piece_of(*batch, piece);
      piece = (piece + 1) % pieces_;
      return cut;
    });
  }
  ElementSpec spec() const override {
    ElementSpec spec = input().spec();
    for (TensorSpec& component : spec.components) {
      std::int64_t& rows = component.dimensions.front();
      rows = rows == TensorSpec::kUnknown || rows % pieces_ != 0 ? TensorSpec::kUnknown : rows / pieces_;
    }
    return spec;
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n < 0 ? n : n * pieces_;
  }

 private:
  // Makes only the pieces that are asked for.
  class Pieces final : public ElementIterator {
   public:
    Pieces(IteratorPtr from, ElementSpec spec, std::int64_t pieces)
        : from_(std::move(from)), rows_(dynamic_cast<RowIterator&>(*from_)), spec_(std::move(spec)), pieces_(pieces) {}

   private:
    std::optional<Element> produce() override {
      const std::int64_t count = begin_pieces(1);
      return count > 0 ? rows_.take_rows(count) : empty_element(spec_.with_row_count(TensorSpec::kUnknown));
    }
    std::int64_t pass_over(std::int64_t count) override {
      for (std::int64_t skipped = 0; skipped < count;) {
        const std::int64_t of_batch = std::min(count - skipped, pieces_ - piece_);
        rows_.skip_rows(begin_pieces(of_batch));
        skipped += of_batch;
      }
      return count;
    }
    // Returns the number of rows of the next pieces of one batch, whose last ones may be smaller, or empty.
    std::int64_t begin_pieces(std::int64_t count) {
      if (piece_ == 0) rows_.begin_batch();
      const std::int64_t rows = rows_.rows_of_batch(), size = (rows + pieces_ - 1) / pieces_;
      const std::int64_t first = std::min(piece_ * size, rows), last = std::min((piece_ + count) * size, rows);
      piece_ = (piece_ + count) % pieces_;
      return last - first;
    }

    IteratorPtr from_;
    RowIterator& rows_;
    ElementSpec spec_;
    std::int64_t pieces_;
    std::int64_t piece_ = 0;
  };

  // Components are cut one by one: they may have different numbers of rows.
  Element piece_of(const Element& batch, std::int64_t piece) const {
    std::vector<HostTensor> components;
    for (const HostTensor& tensor : batch.components()) {
      const std::int64_t size = (tensor.rows() + pieces_ - 1) / pieces_;
      const std::int64_t first = std::min(piece * size, tensor.rows());
      components.push_back(tensor.slice(first, std::min(size, tensor.rows() - first)));
    }
    return {batch.structure(), std::move(components)};
  }
  std::int64_t pieces_;
};

}  // namespace

NodePtr rebatch(NodePtr input, std::vector<std::int64_t> sizes, bool drop_remainder) {
  return std::make_shared<Rebatch>(std::move(input), std::move(sizes), drop_remainder);
}
NodePtr legacy_rebatch(NodePtr input, std::int64_t pieces) {
  return std::make_shared<LegacyRebatch>(std::move(input), pieces);
}

}  // namespace tandem::nodes
