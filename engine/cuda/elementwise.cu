#include <cstring>
#include <initializer_list>

#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

// 16 bytes of elements: what a thread loads or stores in one access.
template <typename T>
class Pack {
 public:
  static constexpr int kElements = static_cast<int>(sizeof(uint4) / sizeof(T));

  Pack() = default;
  __device__ Pack(const T* from, std::int64_t pack) : bytes_(reinterpret_cast<const uint4*>(from)[pack]) {}
  __device__ void store_to(T* to, std::int64_t pack) const { reinterpret_cast<uint4*>(to)[pack] = bytes_; }
  __device__ Wide<T> at(int i) const {
    T element;
    memcpy(&element, reinterpret_cast<const char*>(&bytes_) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return load(&element);
  }
  __device__ void set(int i, Wide<T> value) {
    T element;
    store(&element, value);
    memcpy(reinterpret_cast<char*>(&bytes_) + static_cast<std::size_t>(i) * sizeof(T), &element, sizeof(T));
  }

 private:
  uint4 bytes_;
};

bool are_aligned(std::initializer_list<const void*> places) {
  std::uintptr_t all = 0;
  for (const void* place : places) all |= reinterpret_cast<std::uintptr_t>(place);
  return all % sizeof(uint4) == 0;
}

// work.pack(p) for whole packs where memory is aligned, and work.element(i) for what is left.
template <typename Work>
__global__ void __launch_bounds__(kThreads, 1) for_each(Work work, std::int64_t packs, std::int64_t count) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t p = first; p < packs; p += step) work.pack(p);
  for (std::int64_t i = packs * Work::kPack + first; i < count; i += step) work.element(i);
}

template <typename Work>
void launch(cudaStream_t stream, std::int64_t count, bool is_aligned, const Work& work) {
  if (count == 0) return;
  const std::int64_t packs = is_aligned ? count / Work::kPack : 0;
  start(for_each<Work>, blocks_for(packs == 0 ? count : packs), kThreads, stream, work, packs, count);
}

// to[i] = compute(in[0][i], in[1][i]). `to` may be one of the inputs: each thread reads before it writes.
template <typename T, int Inputs, typename Compute>
struct Map {
  static constexpr int kPack = Pack<T>::kElements;
  T* to;
  const T* in[Inputs];
  Compute compute;

  __device__ void element(std::int64_t i) const {
    Wide<T> values[Inputs];
    for (int input = 0; input < Inputs; ++input) values[input] = load(in[input] + i);
    store(to + i, compute(values));
  }
  __device__ void pack(std::int64_t p) const {
    Pack<T> packs[Inputs], result;
    for (int input = 0; input < Inputs; ++input) packs[input] = Pack<T>(in[input], p);
    for (int i = 0; i < kPack; ++i) {
      Wide<T> values[Inputs];
      for (int input = 0; input < Inputs; ++input) values[input] = packs[input].at(i);
      result.set(i, compute(values));
    }
    result.store_to(to, p);
  }
};

template <typename T>
struct Filler {
  static constexpr int kPack = Pack<T>::kElements;
  T* to;
  Wide<T> value;
  __device__ void element(std::int64_t i) const { store(to + i, value); }
  __device__ void pack(std::int64_t p) const {
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

template <typename To, typename From>
struct Caster {
  static constexpr int kPack = 1;
  To* to;
  const From* from;
  __device__ void element(std::int64_t i) const { store(to + i, converted<Wide<To>>(load(from + i))); }
  __device__ void pack(std::int64_t p) const { element(p); }
};

template <typename T>
struct Reducer {
  static constexpr int kPack = Pack<T>::kElements;
  ReduceArguments arguments;
  Arithmetic operation;
  __device__ void element(std::int64_t i) const {
    Wide<T> value = load(static_cast<const T*>(arguments.inputs[0]) + i);
    for (int rank = 1; rank < arguments.ranks; ++rank) {
      value = apply(operation, value, load(static_cast<const T*>(arguments.inputs[rank]) + i), nullptr);
    }
    for (int copy = 0; copy < arguments.copies; ++copy) store(static_cast<T*>(arguments.outputs[copy]) + i, value);
  }
  __device__ void pack(std::int64_t p) const {
    const Pack<T> first(static_cast<const T*>(arguments.inputs[0]), p);
    Wide<T> values[kPack];
    for (int i = 0; i < kPack; ++i) values[i] = first.at(i);
    for (int rank = 1; rank < arguments.ranks; ++rank) {
      const Pack<T> next(static_cast<const T*>(arguments.inputs[rank]), p);
      for (int i = 0; i < kPack; ++i) values[i] = apply(operation, values[i], next.at(i), nullptr);
    }
    Pack<T> result;
    for (int i = 0; i < kPack; ++i) result.set(i, values[i]);
    for (int copy = 0; copy < arguments.copies; ++copy) result.store_to(static_cast<T*>(arguments.outputs[copy]), p);
  }
};

// Threads take elements that are multiples of `columns` apart, so that each has one column and one value of the bias.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_bias(T* __restrict__ to, const T* __restrict__ bias, std::int64_t rows, std::int64_t columns) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  if (columns > threads) {
    for (std::int64_t column = first; column < columns; column += threads) {
      const Wide<T> value = load(bias + column);
      for (std::int64_t i = column; i < rows * columns; i += columns) store(to + i, add(load(to + i), value));
    }
    return;
  }
  const std::int64_t step = threads / columns * columns;
  if (first >= step) return;
  const Wide<T> value = load(bias + first % columns);
  for (std::int64_t i = first; i < rows * columns; i += step) store(to + i, add(load(to + i), value));
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
    start(add_bias<T>, blocks_for(rows * columns), kThreads, stream, static_cast<T*>(to), static_cast<const T*>(bias),
          rows, columns);
  });
}

void launch_cast(cudaStream_t stream, DType to_dtype, void* to, DType from_dtype, const void* from,
                 std::int64_t count) {
  with_type(from_dtype, [&]<typename From>() {
    with_type(to_dtype, [&]<typename To>() {
      launch(stream, count, false, Caster<To, From>{static_cast<To*>(to), static_cast<const From*>(from)});
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
