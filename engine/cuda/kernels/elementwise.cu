#include <cmath>

#include "engine/cuda/kernels/map.cuh"

namespace tandem::cuda {
namespace {

template <typename T>
struct Filler {
  static constexpr int kPack = Pack<T>::kElements;
  T* to;
  Wide<T> value;
  template <typename Index>
  __device__ void element(Index i) const {
    store(to + i, value);
  }
  template <typename Index>
  __device__ void pack(Index p) const {
    Pack<T> result;
    for (int i = 0; i < kPack; ++i) result.set(i, value);
    result.store_to(to, p);
  }
};

template <typename T>
struct Calculation {
  Arithmetic operation;
  Fault* fault;
  __device__ Wide<T> operator()(const Wide<T>* x) const { return apply(operation, x[0], x[1], fault); }
};

template <typename T>
struct ScaledSum {
  Wide<T> alpha, beta;
  __device__ Wide<T> operator()(const Wide<T>* x) const { return add(multiply(beta, x[1]), multiply(alpha, x[0])); }
};

template <typename T>
struct Scaling {
  Wide<T> alpha;
  __device__ Wide<T> operator()(const Wide<T>* x) const { return multiply(alpha, x[0]); }
};

template <typename T>
struct Root {
  Wide<T> inside, outside;
  __device__ Wide<T> operator()(const Wide<T>* x) const {
    if constexpr (std::is_same_v<Wide<T>, double>) {
      return ::sqrt(x[0] + inside) + outside;
    } else {
      return ::sqrtf(x[0] + inside) + outside;
    }
  }
};

template <typename T>
struct Rectifier {
  __device__ Wide<T> operator()(const Wide<T>* x) const {
    if constexpr (std::is_unsigned_v<T>) {
      return x[0];
    } else {
      return x[0] < Wide<T>{0} ? Wide<T>{0} : x[0];
    }
  }
};

template <typename T>
struct RectifierGradient {
  __device__ Wide<T> operator()(const Wide<T>* x) const { return x[1] > Wide<T>{0} ? x[0] : Wide<T>{0}; }
};

// So many elements that the larger ones fill 16 bytes, in one access.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Bundle {
  T elements[kCount];
};

template <typename To, typename From>
struct Caster {
  static constexpr int kPack =
      static_cast<int>(sizeof(uint4) / (sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From)));
  To* to;
  const From* from;
  template <typename Index>
  __device__ void element(Index i) const {
    store(to + i, converted<Wide<To>>(load(from + i)));
  }
  template <typename Index>
  __device__ void pack(Index p) const {
    const Bundle<From, kPack> source = reinterpret_cast<const Bundle<From, kPack>*>(from)[p];
    Bundle<To, kPack> result;
    for (int i = 0; i < kPack; ++i) store(result.elements + i, converted<Wide<To>>(load(source.elements + i)));
    reinterpret_cast<Bundle<To, kPack>*>(to)[p] = result;
  }
};

template <typename T>
struct Reducer {
  static constexpr int kPack = Pack<T>::kElements;
  ReduceArguments arguments;
  Arithmetic operation;
  template <typename Index>
  __device__ void element(Index i) const {
    Wide<T> value = load(static_cast<const T*>(arguments.inputs[0]) + i);
    for (int rank = 1; rank < arguments.ranks; ++rank) {
      value = apply(operation, value, load(static_cast<const T*>(arguments.inputs[rank]) + i), nullptr);
    }
    for (int copy = 0; copy < arguments.copies; ++copy) store(static_cast<T*>(arguments.outputs[copy]) + i, value);
  }
  template <typename Index>
  __device__ void pack(Index p) const {
    constexpr int kAhead = 4;  // so many loads are under way together
    Wide<T> values[kPack] = {};
    for (int from = 0; from < arguments.ranks; from += kAhead) {
      Pack<T> packs[kAhead];
      for (int i = 0; i < kAhead; ++i) {
        if (from + i < arguments.ranks) packs[i] = Pack<T>(static_cast<const T*>(arguments.inputs[from + i]), p);
      }
      for (int i = 0; i < kAhead; ++i) {
        if (from + i < arguments.ranks) add(values, packs[i], from + i == 0);
      }
    }
    Pack<T> result;
    for (int i = 0; i < kPack; ++i) result.set(i, values[i]);
    for (int copy = 0; copy < arguments.copies; ++copy) result.store_to(static_cast<T*>(arguments.outputs[copy]), p);
  }

 private:
  __device__ void add(Wide<T>* values, const Pack<T>& pack, bool is_first) const {
    for (int i = 0; i < kPack; ++i)
      values[i] = is_first ? pack.at(i) : apply(operation, values[i], pack.at(i), nullptr);
  }
};

template <typename Unit, typename T, typename Index>
__device__ void add_to(T* to, Index at, const Unit& bias) {
  Unit unit(to, at);
  for (int i = 0; i < Unit::kElements; ++i) unit.set(i, add(unit.at(i), bias.at(i)));
  unit.store_to(to, at);
}

// In units of what rows are multiples of: `width` of them in a row, `count` in all. Threads take units that are
// multiples of `width` apart, so that each has one part of the bias, and divides once.
template <typename Unit, typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    add_bias(T* __restrict__ to, const T* __restrict__ bias, Index count, Index width) {
  const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const Index threads = static_cast<Index>(gridDim.x) * blockDim.x;
  if (width > threads) {
    for (Index column = first; column < width; column += threads) {
      const Unit part(bias, column);
      for (Index i = column; i < count; i += width) add_to(to, i, part);
    }
    return;
  }
  const Index step = threads / width * width;
  if (first >= step) return;
  const Unit part(bias, first % width);
  for (Index i = first; i < count; i += step) add_to(to, i, part);
}

template <typename Unit, typename T>
void start_add_bias(cudaStream_t stream, T* to, const T* bias, std::int64_t count, std::int64_t width) {
  const unsigned blocks = blocks_for(count < width ? width : count);
  if (fits_narrow(count)) {
    start(add_bias<Unit, T, NarrowIndex>, blocks, kThreads, stream, to, bias, count, width);
  } else {
    start(add_bias<Unit, T, std::int64_t>, blocks, kThreads, stream, to, bias, count, width);
  }
}

}  // namespace

void launch_fill(cudaStream_t stream, DType dtype, void* to, double value, std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, are_aligned({to}), Filler<T>{static_cast<T*>(to), converted<Wide<T>>(value)});
  });
}

void launch_arithmetic(cudaStream_t stream, DType dtype, Arithmetic operation, void* to, const void* a, const void* b,
                       std::int64_t count, Fault* fault) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, are_aligned({to, a, b}),
           Map<T, 2, Calculation<T>>{
               static_cast<T*>(to), {static_cast<const T*>(a), static_cast<const T*>(b)}, {operation, fault}});
  });
}

void launch_scale_add(cudaStream_t stream, DType dtype, void* to, const void* a, double alpha, double beta,
                      std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    const auto wide_alpha = converted<Wide<T>>(alpha), wide_beta = converted<Wide<T>>(beta);
    T* target = static_cast<T*>(to);
    const T* source = static_cast<const T*>(a);
    const bool is_aligned = are_aligned({to, a});
    if (wide_beta == Wide<T>{0}) {
      launch(stream, count, is_aligned, Map<T, 1, Scaling<T>>{target, {source}, {wide_alpha}});
    } else {
      launch(stream, count, is_aligned, Map<T, 2, ScaledSum<T>>{target, {source, target}, {wide_alpha, wide_beta}});
    }
  });
}

void launch_square_root(cudaStream_t stream, DType dtype, void* to, const void* a, double inside, double outside,
                        std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      launch(stream, count, are_aligned({to, a}),
             Map<T, 1, Root<T>>{static_cast<T*>(to),
                                {static_cast<const T*>(a)},
                                {converted<Wide<T>>(inside), converted<Wide<T>>(outside)}});
    }
  });
}

void launch_relu(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, are_aligned({to, a}),
           Map<T, 1, Rectifier<T>>{static_cast<T*>(to), {static_cast<const T*>(a)}, {}});
  });
}

void launch_relu_gradient(cudaStream_t stream, DType dtype, void* to, const void* gradient, const void* output,
                          std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, are_aligned({to, gradient, output}),
           Map<T, 2, RectifierGradient<T>>{
               static_cast<T*>(to), {static_cast<const T*>(gradient), static_cast<const T*>(output)}, {}});
  });
}

void launch_add_bias(cudaStream_t stream, DType dtype, void* to, const void* bias, std::int64_t rows,
                     std::int64_t columns) {
  if (rows * columns == 0) return;
  with_type(dtype, [&]<typename T>() {
    T* target = static_cast<T*>(to);
    const T* source = static_cast<const T*>(bias);
    constexpr std::int64_t kPack = Pack<T>::kElements;
    if (columns % kPack == 0 && are_aligned({to, bias})) {
      start_add_bias<Pack<T>>(stream, target, source, rows * columns / kPack, columns / kPack);
    } else {
      start_add_bias<Single<T>>(stream, target, source, rows * columns, columns);
    }
  });
}

void launch_cast(cudaStream_t stream, DType to_dtype, void* to, DType from_dtype, const void* from,
                 std::int64_t count) {
  with_type(from_dtype, [&]<typename From>() {
    with_type(to_dtype, [&]<typename To>() {
      launch(stream, count, are_aligned({to, from}),
             Caster<To, From>{static_cast<To*>(to), static_cast<const From*>(from)});
    });
  });
}

void launch_reduce(cudaStream_t stream, DType dtype, Arithmetic operation, const ReduceArguments& arguments,
                   std::int64_t count) {
  bool is_aligned = true;
  for (int rank = 0; rank < arguments.ranks; ++rank) is_aligned = is_aligned && are_aligned({arguments.inputs[rank]});
  for (int copy = 0; copy < arguments.copies; ++copy) is_aligned = is_aligned && are_aligned({arguments.outputs[copy]});
  with_type(dtype, [&]<typename T>() { launch(stream, count, is_aligned, Reducer<T>{arguments, operation}); });
}

}  // namespace tandem::cuda
