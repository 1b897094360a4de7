#include "engine/kernels/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "engine/kernels/element_types.h"

namespace tandem {
namespace {

template <typename T>
bool is_nan([[maybe_unused]] T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<Wide<T>>(value));
  }
}

// The magnitude of an integer has a type of its own, because the lowest one has no positive counterpart.
template <typename T>
auto magnitude(T value) {
  if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<std::uint64_t>(value);
    return std::is_signed_v<T> && value < T{0} ? std::uint64_t{0} - bits : bits;
  } else {
    return std::abs(static_cast<Wide<T>>(value));
  }
}

template <typename T>
T positive(T value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(std::min(magnitude(value), kMost));
  } else {
    return magnitude(value);
  }
}

}  // namespace

void execute_largest(const kernel::Largest& op) {
  with_type(op.a.dtype(), "largest", [&]<typename T>() {
    const T* a = elements<T>(op.a);
    const auto value_of = [&](T element) { return op.is_of_magnitudes ? positive(element) : element; };
    T most = value_of(a[0]);
    for (std::int64_t i = 1; i < op.a.element_count() && !is_nan(most); ++i) {
      const T value = value_of(a[i]);
      if (most < value || is_nan(value)) most = value;
    }
    *elements<T>(op.to) = most;
  });
}

void execute_top_k(const kernel::TopK& op) {
  with_type(op.a.dtype(), "top_k", [&]<typename T>() {
    const T* a = elements<T>(op.a);
    const auto is_before = [a](std::int64_t one, std::int64_t other) {
      const bool is_one_nan = is_nan(a[one]), is_other_nan = is_nan(a[other]);
      if (is_one_nan != is_other_nan) return is_one_nan;
      if (!is_one_nan) {
        const auto size = magnitude(a[one]), other_size = magnitude(a[other]);
        if (size != other_size) return size > other_size;
      }
      return one < other;
    };
    std::vector<std::int64_t> places(static_cast<std::size_t>(op.a.element_count()));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    const auto end = places.begin() + op.values.element_count();
    if (end != places.end()) std::nth_element(places.begin(), end, places.end(), is_before);
    std::sort(places.begin(), end, is_before);
    std::copy(places.begin(), end, elements<std::int64_t>(op.indices));
    std::transform(places.begin(), end, elements<T>(op.values), [a](std::int64_t place) { return a[place]; });
  });
}

}  // namespace tandem
