#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

// function(i) for every element.
template <typename Function>
__global__ void for_each_index(std::int64_t count, Function function) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    function(i);
  }
}

template <typename Function>
void launch(cudaStream_t stream, std::int64_t count, Function function) {
  if (count > 0) start(for_each_index<Function>, blocks_for(count), kThreads, stream, count, function);
}

template <typename T>
struct Filler {
  T* to;
  Wide<T> value;
  __device__ void operator()(std::int64_t i) const { store(to + i, value); }
};

template <typename T>
struct Calculator {
  Arithmetic operation;
  T* to;
  const T *a, *b;
  Fault* fault;
  __device__ void operator()(std::int64_t i) const { store(to + i, apply(operation, load(a + i), load(b + i), fault)); }
};

template <typename T>
struct ScaleAdder {
  T* to;
  const T* a;
  Wide<T> alpha, beta;
  bool reads_to;
  __device__ void operator()(std::int64_t i) const {
    const Wide<T> scaled = multiply(alpha, load(a + i));
    store(to + i, reads_to ? add(multiply(beta, load(to + i)), scaled) : scaled);
  }
};

template <typename T>
struct Rectifier {
  T* to;
  const T* a;
  __device__ void operator()(std::int64_t i) const {
    const Wide<T> x = load(a + i);
    if constexpr (std::is_unsigned_v<T>) {
      store(to + i, x);
    } else {
      store(to + i, x < Wide<T>{0} ? Wide<T>{0} : x);
    }
  }
};

template <typename T>
struct RectifierGradient {
  T* to;
  const T *gradient, *output;
  __device__ void operator()(std::int64_t i) const {
    store(to + i, load(output + i) > Wide<T>{0} ? load(gradient + i) : Wide<T>{0});
  }
};

template <typename T>
struct BiasAdder {
  T* to;
  const T* bias;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const { store(to + i, add(load(to + i), load(bias + i % columns))); }
};

template <typename To, typename From>
struct Caster {
  To* to;
  const From* from;
  __device__ void operator()(std::int64_t i) const { store(to + i, converted<Wide<To>>(load(from + i))); }
};

template <typename T>
struct Reducer {
  ReduceArguments arguments;
  Arithmetic operation;
  __device__ void operator()(std::int64_t i) const {
    Wide<T> value = load(static_cast<const T*>(arguments.inputs[0]) + i);
    for (int rank = 1; rank < arguments.ranks; ++rank) {
      value = apply(operation, value, load(static_cast<const T*>(arguments.inputs[rank]) + i), nullptr);
    }
    for (int copy = 0; copy < arguments.copies; ++copy) store(static_cast<T*>(arguments.outputs[copy]) + i, value);
  }
};

}  // namespace

void launch_fill(cudaStream_t stream, DType dtype, void* to, double value, std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, Filler<T>{static_cast<T*>(to), converted<Wide<T>>(value)});
  });
}

void launch_arithmetic(cudaStream_t stream, DType dtype, Arithmetic operation, void* to, const void* a, const void* b,
                       std::int64_t count, Fault* fault) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count,
           Calculator<T>{operation, static_cast<T*>(to), static_cast<const T*>(a), static_cast<const T*>(b), fault});
  });
}

void launch_scale_add(cudaStream_t stream, DType dtype, void* to, const void* a, double alpha, double beta,
                      std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    using W = Wide<T>;
    launch(stream, count,
           ScaleAdder<T>{static_cast<T*>(to), static_cast<const T*>(a), converted<W>(alpha), converted<W>(beta),
                         converted<W>(beta) != W{0}});
  });
}

void launch_relu(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count, Rectifier<T>{static_cast<T*>(to), static_cast<const T*>(a)});
  });
}

void launch_relu_gradient(cudaStream_t stream, DType dtype, void* to, const void* gradient, const void* output,
                          std::int64_t count) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, count,
           RectifierGradient<T>{static_cast<T*>(to), static_cast<const T*>(gradient), static_cast<const T*>(output)});
  });
}

void launch_add_bias(cudaStream_t stream, DType dtype, void* to, const void* bias, std::int64_t rows,
                     std::int64_t columns) {
  with_type(dtype, [&]<typename T>() {
    launch(stream, rows * columns, BiasAdder<T>{static_cast<T*>(to), static_cast<const T*>(bias), columns});
  });
}

void launch_cast(cudaStream_t stream, DType to_dtype, void* to, DType from_dtype, const void* from,
                 std::int64_t count) {
  with_type(from_dtype, [&]<typename From>() {
    with_type(to_dtype, [&]<typename To>() {
      launch(stream, count, Caster<To, From>{static_cast<To*>(to), static_cast<const From*>(from)});
    });
  });
}

void launch_reduce(cudaStream_t stream, DType dtype, Arithmetic operation, const ReduceArguments& arguments,
                   std::int64_t count) {
  with_type(dtype, [&]<typename T>() { launch(stream, count, Reducer<T>{arguments, operation}); });
}

}  // namespace tandem::cuda
