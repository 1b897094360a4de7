#include <algorithm>

#include "engine/base/philox.h"
#include "engine/kernels/element_types.h"
#include "engine/kernels/layers.h"

namespace tandem {
namespace {

// Random words by number; those of one block are made together.
class Words {
 public:
  explicit Words(std::uint64_t seed)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, words_(block(0)) {}

  std::uint32_t of(std::uint64_t number) {
    if (number / 4 != counter_) {
      counter_ = number / 4;
      words_ = block(counter_);
    }
    return words_[number % 4];
  }

 private:
  PhiloxWords block(std::uint64_t counter) const {
    return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}, key_);
  }

  PhiloxKey key_;
  std::uint64_t counter_ = 0;
  PhiloxWords words_;
};

// Calls visit(first element, length, number of the first, distance of numbers) for runs of elements that differ in the
// digit of the innermost axis only.
template <typename Visit>
void for_each_run(const kernel::ElementNumbers& numbers, std::int64_t count, Visit&& visit) {
  std::size_t innermost = 0;
  for (std::size_t axis = 1; axis < numbers.sizes.size(); ++axis) {
    if (numbers.sizes[axis] > 1) innermost = axis;
  }
  for (std::int64_t element = 0; element < count;) {
    std::int64_t left = numbers.first + element, number = numbers.offset, length = count - element;
    for (std::size_t axis = innermost; axis > 0; --axis) {
      const std::int64_t digit = left % numbers.sizes[axis];
      left /= numbers.sizes[axis];
      number += digit * numbers.strides[axis];
      if (axis == innermost) length = std::min(length, numbers.sizes[axis] - digit);
    }
    visit(element, length, number + left * numbers.strides[0], numbers.strides[innermost]);
    element += length;
  }
}

}  // namespace

void execute_dropout(const kernel::Dropout& op) {
  const std::uint64_t bound = word_bound(op.rate);
  with_floating_type(op.to.dtype(), "dropout", [&]<typename T>() {
    Words words(op.seed);
    const auto factor = static_cast<Wide<T>>(1 / (1 - op.rate));
    for_each_run(op.numbers, op.to.element_count(),
                 [&, to = elements<T>(op.to), a = elements<const T>(op.a)](std::int64_t first, std::int64_t length,
                                                                           std::int64_t number, std::int64_t stride) {
                   for (std::int64_t i = first; i < first + length; ++i, number += stride) {
                     to[i] = words.of(static_cast<std::uint64_t>(number)) < bound ? T{} : T(factor * Wide<T>{a[i]});
                   }
                 });
  });
}

}  // namespace tandem
