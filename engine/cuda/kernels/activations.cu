#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/map.cuh"

namespace tandem::cuda {
namespace {

// 0.5 (1 + tanh(x)) = 1 / (1 + exp(-2 x)): both activations are a times the logistic function of an argument.
template <typename W>
struct GeluArgument {
  static constexpr W kTwice = static_cast<W>(1.5957691216057308), kCubic = static_cast<W>(0.044715);  // 2 sqrt(2 / pi)
  __device__ static W of(W a) { return kTwice * (a + kCubic * a * a * a); }
  __device__ static W slope(W a) { return kTwice * (1 + 3 * kCubic * a * a); }
};
template <typename W>
struct SiluArgument {
  __device__ static W of(W a) { return a; }
  __device__ static W slope(W) { return 1; }
};

// With exp(-|x|), which is at most 1.
template <typename W>
__device__ W logistic(W x, W exponential_of_minus) {
  const W inverse = 1 / (1 + exponential_of_minus);
  return x < 0 ? exponential_of_minus * inverse : inverse;
}

template <typename Argument, typename W>
struct Activating {
  __device__ W operator()(const W* in) const {
    const W x = Argument::of(in[0]);
    return in[0] * logistic(x, exp(x < 0 ? x : -x));
  }
};

// Far from 0 the slope of the logistic function is 0, whatever that of the argument has become.
template <typename Argument, typename W>
struct ActivationSlope {
  __device__ W operator()(const W* in) const {
    const W a = in[1], x = Argument::of(a), exponential_of_minus = exp(x < 0 ? x : -x);
    const W inverse = 1 / (1 + exponential_of_minus), slope = exponential_of_minus * inverse * inverse;
    const W change = slope == 0 ? 0 : a * slope * Argument::slope(a);
    return in[0] * (logistic(x, exponential_of_minus) + change);
  }
};

template <template <typename> typename Argument, typename T>
void launch_activation(cudaStream_t stream, T* to, const T* a, std::int64_t count) {
  using W = Wide<T>;
  launch(stream, count, are_aligned({to, a}), Map<T, 1, Activating<Argument<W>, W>>{to, {a}, {}});
}

template <template <typename> typename Argument, typename T>
void launch_slope(cudaStream_t stream, T* to, const T* gradient, const T* a, std::int64_t count) {
  using W = Wide<T>;
  launch(stream, count, are_aligned({to, gradient, a}),
         Map<T, 2, ActivationSlope<Argument<W>, W>>{to, {gradient, a}, {}});
}

}  // namespace

void launch_activate(cudaStream_t stream, DType dtype, ActivationKind kind, void* to, const void* a,
                     std::int64_t count) {
  with_floating_type(dtype, [&]<typename T>() {
    const auto launch_it =
        kind == ActivationKind::gelu ? launch_activation<GeluArgument, T> : launch_activation<SiluArgument, T>;
    launch_it(stream, static_cast<T*>(to), static_cast<const T*>(a), count);
  });
}

void launch_activation_gradient(cudaStream_t stream, DType dtype, ActivationKind kind, void* to, const void* gradient,
                                const void* a, std::int64_t count) {
  with_floating_type(dtype, [&]<typename T>() {
    const auto launch_it = kind == ActivationKind::gelu ? launch_slope<GeluArgument, T> : launch_slope<SiluArgument, T>;
    launch_it(stream, static_cast<T*>(to), static_cast<const T*>(gradient), static_cast<const T*>(a), count);
  });
}

}  // namespace tandem::cuda
