// The nodes that choose which elements come, and how many.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// The base of nodes with one input that pass on its elements, and therefore have its batch size.
template <typename Node>
class PassesOn : public NodeOf<Node> {
 public:
  std::int64_t batch_size() const override { return this->input().batch_size(); }

 protected:
  PassesOn(DatasetOp kind, NodePtr input) : NodeOf<Node>(kind, {std::move(input)}) {}
};

class Repeat final : public PassesOn<Repeat> {
 public:
  Repeat(NodePtr input, std::int64_t count) : PassesOn(DatasetOp::repeat, std::move(input)), count_(count) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override { return std::make_unique<Rounds>(*this, memory); }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (count_ == 0 || n == 0) return 0;
    if (count_ == Dataset::kForever) return kInfiniteCardinality;
    return n < 0 ? n : n * count_;
  }
  bool skips_unmade() const override { return input().skips_unmade(); }

 private:
  class Rounds final : public ElementIterator {
   public:
    Rounds(const Repeat& node, MemoryPtr memory) : node_(node), memory_(std::move(memory)) {}

   private:
    std::optional<Element> produce() override {
      while (begin_round()) {
        auto element = from_->next();
        if (element) has_given_ = true;
        if (element || !has_given_) return element;  // an empty input stays empty
        end_round();
      }
      return std::nullopt;
    }
    std::int64_t pass_over(std::int64_t count) override {
      std::int64_t skipped = 0;
      while (begin_round()) {
        const std::int64_t passed = from_->skip(count - skipped);
        skipped += passed;
        if (passed > 0) has_given_ = true;
        if (skipped == count || !has_given_) return skipped;
        end_round();
      }
      return skipped;
    }
    bool begin_round() {
      if (from_) return true;
      if (node_.count_ != Dataset::kForever && round_ == node_.count_) return false;
      from_ = node_.input().iterate(memory_);
      return true;
    }
    void end_round() {
      from_.reset();
      has_given_ = false;
      ++round_;
    }

    const Repeat& node_;
    MemoryPtr memory_;
    IteratorPtr from_;  // of this round; null between rounds
    std::int64_t round_ = 0;
    bool has_given_ = false;  // in this round
  };

  std::int64_t count_;
};

class Take final : public PassesOn<Take> {
 public:
  Take(NodePtr input, std::int64_t count) : PassesOn(DatasetOp::take, std::move(input)), count_(count) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([from = input().iterate(memory), left = count_]() mutable -> std::optional<Element> {
      if (left == 0) return std::nullopt;
      --left;
      return from->next();
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (count_ < 0 || n == kUnknownCardinality) return n;
    return n == kInfiniteCardinality ? count_ : std::min(n, count_);
  }

 private:
  std::int64_t count_;
};

class Skip final : public PassesOn<Skip> {
 public:
  Skip(NodePtr input, std::int64_t count) : PassesOn(DatasetOp::skip, std::move(input)), count_(count) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([from = input().iterate(memory), left = count_]() mutable -> std::optional<Element> {
      if (left < 0) return std::nullopt;
      for (; left > 0; --left) {
        if (!from->next()) return std::nullopt;
      }
      return from->next();
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (count_ < 0) return 0;
    return n < 0 ? n : std::max<std::int64_t>(0, n - count_);
  }

 private:
  std::int64_t count_;
};

class Shard final : public PassesOn<Shard> {
 public:
  Shard(NodePtr input, std::int64_t num_shards, std::int64_t index, bool must_not_be_empty)
      : PassesOn(DatasetOp::shard, std::move(input)),
        num_shards_(num_shards),
        index_(index),
        must_not_be_empty_(must_not_be_empty) {}
  bool is_hint() const { return num_shards_ == Dataset::kShardHint; }
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    if (num_shards_ <= 1) return input().iterate(memory);  // an unreplaced hint does not shard
    return make_iterator(
        [this, from = input().iterate(memory), position = std::int64_t{0}]() mutable -> std::optional<Element> {
          const std::int64_t before = (index_ - position % num_shards_ + num_shards_) % num_shards_;
          if (from->skip(before) < before) return std::nullopt;
          auto element = from->next();
          position += before + 1;
          if (element && must_not_be_empty_ && position < num_shards_) position += check_enough(*from, position);
          return element;
        });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n < 0 || num_shards_ <= 1) return n;
    return n / num_shards_ + (index_ < n % num_shards_ ? 1 : 0);
  }

 private:
  // Skips the other shards' first elements. A shard without any element ends without an error.
  std::int64_t check_enough(ElementIterator& from, std::int64_t position) const {
    const std::int64_t skipped = from.skip(num_shards_ - position);
    if (position + skipped < num_shards_) {
      throw InvalidArgumentError(fmt::format(
          "the dataset has {} elements to divide among {} shards; give it more (files), or choose the auto-shard "
          "policy DATA or OFF",
          position + skipped, num_shards_));
    }
    return skipped;
  }

  std::int64_t num_shards_, index_;
  bool must_not_be_empty_;
};

class Options final : public PassesOn<Options> {
 public:
  Options(NodePtr input, DatasetOptions options) : PassesOn(DatasetOp::options, std::move(input)), options_(options) {}
  const DatasetOptions& get() const { return options_; }
  std::optional<std::int64_t> size() const override { return input().size(); }
  Element at(std::int64_t index) const override { return input().at(index); }
  bool skips_unmade() const override { return input().skips_unmade(); }

 private:
  DatasetOptions options_;
};

class AssertCardinality final : public PassesOn<AssertCardinality> {
 public:
  AssertCardinality(NodePtr input, std::int64_t count)
      : PassesOn(DatasetOp::assert_cardinality, std::move(input)), count_(count) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    return make_iterator([this, from = input().iterate(memory), seen = std::int64_t{0}]() mutable {
      auto element = from->next();
      if (element ? seen >= count_ : seen != count_) {
        throw InvalidArgumentError(fmt::format("a dataset of {} elements was asserted, found {}{}", count_,
                                               element ? "at least " : "", element ? seen + 1 : seen));
      }
      ++seen;
      return element;
    });
  }
  std::int64_t cardinality() const override { return count_; }

 private:
  std::int64_t count_;
};

}  // namespace

NodePtr repeat(NodePtr input, std::int64_t count) {
  return std::make_shared<Repeat>(std::move(input), count);
}
NodePtr take(NodePtr input, std::int64_t count) {
  return std::make_shared<Take>(std::move(input), count);
}
NodePtr skip(NodePtr input, std::int64_t count) {
  return std::make_shared<Skip>(std::move(input), count);
}
NodePtr shard(NodePtr input, std::int64_t num_shards, std::int64_t index, bool must_not_be_empty) {
  return std::make_shared<Shard>(std::move(input), num_shards, index, must_not_be_empty);
}
bool is_shard_hint(const DatasetNode& node) {
  const auto* shard = dynamic_cast<const Shard*>(&node);
  return shard && shard->is_hint();
}
NodePtr options(NodePtr input, DatasetOptions options) {
  return std::make_shared<Options>(std::move(input), options);
}
std::optional<DatasetOptions> options_of(const DatasetNode& node) {
  const auto* options = dynamic_cast<const Options*>(&node);
  return options ? std::optional(options->get()) : std::nullopt;
}
NodePtr assert_cardinality(NodePtr input, std::int64_t count) {
  return std::make_shared<AssertCardinality>(std::move(input), count);
}
}  // namespace tandem::nodes
