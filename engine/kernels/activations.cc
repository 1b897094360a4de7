#include <cmath>

#include "engine/kernels/exponential.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

// 0.5 (1 + tanh(x)) = 1 / (1 + exp(-2 x)): both activations are a times the logistic function of an argument.
template <typename W>
struct GeluArgument {
  static constexpr W kTwice = static_cast<W>(1.5957691216057308), kCubic = static_cast<W>(0.044715);  // 2 sqrt(2 / pi)
  static W of(W a) { return kTwice * (a + kCubic * a * a * a); }
  static W slope(W a) { return kTwice * (1 + 3 * kCubic * a * a); }
};
template <typename W>
struct SiluArgument {
  static W of(W a) { return a; }
  static W slope(W /*a*/) { return 1; }
};

// With exp(-|x|), which is at most 1.
template <typename W>
W logistic(W x, W exponential_of_minus) {
  const W inverse = 1 / (1 + exponential_of_minus);
  return x < 0 ? exponential_of_minus * inverse : inverse;
}

template <typename Argument, typename W>
W activated(W a) {
  const W x = Argument::of(a);
  return a * logistic(x, exponential(-std::abs(x)));
}

// Far from 0 the slope of the logistic function is 0, whatever that of the argument has become.
template <typename Argument, typename W>
W derivative(W a) {
  const W x = Argument::of(a), exponential_of_minus = exponential(-std::abs(x));
  const W inverse = 1 / (1 + exponential_of_minus), slope = exponential_of_minus * inverse * inverse;
  const W change = a * slope * Argument::slope(a);
  return logistic(x, exponential_of_minus) + (slope == 0 ? 0 : change);
}

// In pieces that are copied first: loops over memory that may be the operand's are not vectorised in place.
constexpr std::int64_t kPiece = 512;

template <typename T, typename Function>
void map_pieces(T* to, const T* a, const T* b, std::int64_t count, Function function) {
  using W = Wide<T>;
  std::array<W, kPiece> x{}, y{};
  for (std::int64_t first = 0; first < count; first += kPiece) {
    const std::int64_t length = std::min(kPiece, count - first);
    widen(x.data(), a + first, length);
    if (b != nullptr) widen(y.data(), b + first, length);
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) x[i] = function(x[i], y[i]);
    narrow(to + first, x.data(), length);
  }
}

template <template <typename> typename Argument>
void activate_with(const kernel::Activate& op) {
  with_floating_type(op.to.dtype(), "activate", [&]<typename T>() {
    using W = Wide<T>;
    map_pieces<T>(elements<T>(op.to), elements<T>(op.a), nullptr, op.to.element_count(),
                  [](W a, W /*none*/) { return activated<Argument<W>>(a); });
  });
}

template <template <typename> typename Argument>
void gradient_with(const kernel::ActivationGradient& op) {
  with_floating_type(op.to.dtype(), "activation_gradient", [&]<typename T>() {
    using W = Wide<T>;
    map_pieces<T>(elements<T>(op.to), elements<T>(op.a), elements<T>(op.gradient), op.to.element_count(),
                  [](W a, W gradient) { return gradient * derivative<Argument<W>>(a); });
  });
}

}  // namespace

void execute_activate(const kernel::Activate& op) {
  op.activation == kernel::Activation::gelu ? activate_with<GeluArgument>(op) : activate_with<SiluArgument>(op);
}

void execute_activation_gradient(const kernel::ActivationGradient& op) {
  op.activation == kernel::Activation::gelu ? gradient_with<GeluArgument>(op) : gradient_with<SiluArgument>(op);
}

}  // namespace tandem
