#include "engine/base/philox.h"
#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/map.cuh"

namespace tandem::cuda {
namespace {

// Random words by number; those of one block are made together.
class Words {
 public:
  __device__ explicit Words(std::uint64_t seed) : seed_(seed) {}

  __device__ std::uint32_t of(std::uint64_t number) {
    const std::uint64_t counter = number / 4;
    if (!has_block_ || counter != counter_) {
      words_ = philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
                      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
      counter_ = counter;
      has_block_ = true;
    }
    return words_[number % 4];
  }

 private:
  std::uint64_t seed_, counter_ = 0;
  bool has_block_ = false;
  PhiloxWords words_{};
};

// The number of an element, and of how many from there on the innermost digit alone changes.
struct Numbered {
  std::int64_t number, run;
};

__device__ Numbered number_of(const DropoutArguments& arguments, std::int64_t element) {
  std::int64_t left = arguments.first + element, number = arguments.offset, run = arguments.count - element;
  for (int axis = arguments.innermost; axis > 0; --axis) {
    const std::int64_t size = arguments.sizes[axis], rest = left / size, digit = left - rest * size;
    number += digit * arguments.strides[axis];
    left = rest;
    if (axis == arguments.innermost) run = size - digit;
  }
  return {number + left * arguments.strides[0], run};
}

template <typename T>
struct Dropping {
  static constexpr int kPack = Pack<T>::kElements;
  DropoutArguments arguments;

  __device__ Wide<T> kept(Words& words, std::int64_t number, Wide<T> value) const {
    const bool is_dropped = words.of(static_cast<std::uint64_t>(number)) < arguments.bound;
    return is_dropped ? Wide<T>{0} : static_cast<Wide<T>>(arguments.factor) * value;
  }
  template <typename Index>
  __device__ void element(Index i) const {
    Words words(arguments.seed);
    const T* a = static_cast<const T*>(arguments.a);
    store(static_cast<T*>(arguments.to) + i, kept(words, number_of(arguments, i).number, load(a + i)));
  }
  template <typename Index>
  __device__ void pack(Index p) const {
    Words words(arguments.seed);
    const Pack<T> from(static_cast<const T*>(arguments.a), p);
    const std::int64_t first = static_cast<std::int64_t>(p) * kPack, stride = arguments.strides[arguments.innermost];
    Numbered at = number_of(arguments, first);
    Pack<T> result;
    for (int i = 0; i < kPack; ++i) {
      result.set(i, kept(words, at.number, from.at(i)));
      at.number += stride;
      if (--at.run == 0 && i + 1 < kPack) at = number_of(arguments, first + i + 1);
    }
    result.store_to(static_cast<T*>(arguments.to), p);
  }
};

}  // namespace

void launch_dropout(cudaStream_t stream, DType dtype, const DropoutArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    launch(stream, arguments.count, are_aligned({arguments.to, arguments.a}), Dropping<T>{arguments});
  });
}

}  // namespace tandem::cuda
