// The nodes whose iterations depend on earlier ones: shuffle and cache.
#include <algorithm>
#include <numeric>
#include <random>

#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// Shuffles by Fisher and Yates' algorithm, because the result of std::shuffle differs between libraries.
std::vector<std::int64_t> order_of(std::int64_t size, std::mt19937_64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// Iterates over `size` elements in a random order, which is drawn when the first of them is made; `at` returns an
// element by its number.
template <typename At>
IteratorPtr shuffled(std::int64_t size, std::uint64_t seed, At at) {
  class Iterator final : public ElementIterator {
   public:
    Iterator(std::int64_t size, std::uint64_t seed, At at) : size_(size), seed_(seed), at_(std::move(at)) {}

   private:
    std::optional<Element> produce() override {
      if (i_ == size_) return std::nullopt;
      if (order_.empty()) {
        std::mt19937_64 random(seed_);
        order_ = order_of(size_, random);
      }
      return at_(order_[static_cast<std::size_t>(i_++)]);
    }
    std::int64_t pass_over(std::int64_t count) override {
      const std::int64_t skipped = std::min(count, size_ - i_);
      i_ += skipped;
      return skipped;
    }
    const std::int64_t size_;
    const std::uint64_t seed_;
    const At at_;
    std::vector<std::int64_t> order_;
    std::int64_t i_ = 0;
  };
  return std::make_unique<Iterator>(size, seed, std::move(at));
}

class Shuffle final : public NodeOf<Shuffle> {
 public:
  Shuffle(NodePtr input, std::uint64_t seed, bool reshuffles, std::int64_t buffer_size)
      : NodeOf(DatasetOp::shuffle, {std::move(input)}),
        seed_(seed),
        reshuffles_(reshuffles),
        buffer_size_(buffer_size) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    const std::uint64_t seed = seed_ + (reshuffles_ ? memory->next_shuffle(this) : 0);
    if (buffer_size_ == Dataset::kAll) return iterate_all(memory, seed);
    return iterate_buffer(memory, std::mt19937_64(seed));
  }
  bool skips_unmade() const override {
    return buffer_size_ == Dataset::kAll && input().size().has_value() && input().skips_unmade();
  }
  std::int64_t batch_size() const override { return input().batch_size(); }

 private:
  IteratorPtr iterate_all(const MemoryPtr& memory, std::uint64_t seed) const {
    if (const auto size = input().size()) {
      return shuffled(*size, seed, [this](std::int64_t index) { return input().at(index); });
    }
    std::vector<Element> elements;
    const IteratorPtr from = input().iterate(memory);
    while (auto element = from->next()) elements.push_back(*std::move(element));
    const auto size = static_cast<std::int64_t>(elements.size());
    return shuffled(size, seed, [elements = std::move(elements)](std::int64_t index) {
      return elements[static_cast<std::size_t>(index)];
    });
  }
  // Takes an element of the buffer at random; the input's next element takes its place.
  IteratorPtr iterate_buffer(const MemoryPtr& memory, const std::mt19937_64& start) const {
    return make_iterator([this, random = start, from = input().iterate(memory),
                          buffer = std::vector<Element>()]() mutable -> std::optional<Element> {
      while (static_cast<std::int64_t>(buffer.size()) < buffer_size_) {
        auto element = from->next();
        if (!element) break;
        buffer.push_back(*std::move(element));
      }
      if (buffer.empty()) return std::nullopt;
      std::swap(buffer[random() % buffer.size()], buffer.back());
      Element chosen = std::move(buffer.back());
      buffer.pop_back();
      return chosen;
    });
  }

  std::uint64_t seed_;
  bool reshuffles_;
  std::int64_t buffer_size_;
};

class Cache final : public NodeOf<Cache> {
 public:
  explicit Cache(NodePtr input) : NodeOf(DatasetOp::cache, {std::move(input)}) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    if (const auto cached = memory->cached(this)) {
      return make_iterator([cached, i = std::size_t{0}]() mutable -> std::optional<Element> {
        if (i == cached->size()) return std::nullopt;
        return (*cached)[i++];
      });
    }
    return make_iterator([this, memory, from = input().iterate(memory), kept = std::vector<Element>()]() mutable {
      auto element = from->next();
      if (element) {
        kept.push_back(*element);
      } else {
        memory->keep(this, std::make_shared<const std::vector<Element>>(std::move(kept)));
      }
      return element;
    });
  }
  std::int64_t batch_size() const override { return input().batch_size(); }
};

}  // namespace

NodePtr shuffle(NodePtr input, std::uint64_t seed, bool reshuffle_each_iteration, std::int64_t buffer_size) {
  return std::make_shared<Shuffle>(std::move(input), seed, reshuffle_each_iteration, buffer_size);
}
NodePtr cache(NodePtr input) {
  return std::make_shared<Cache>(std::move(input));
}

}  // namespace tandem::nodes
