#include "engine/kernels/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/kernels/element_types.h"
#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

struct RowResult {
  double cross_entropy = 0;
  bool is_correct = false;
};

// Shifting by the largest logit keeps every exponential within [0, 1] and their sum at least 1. The gradient may
// share the logits' memory.
template <typename T>
RowResult row_loss(const T* logits, T* gradient, std::int64_t classes, std::int64_t label, double gradient_scale) {
  const T* largest = std::max_element(logits, logits + classes);
  const bool is_correct = largest - logits == label;
  const T shift = *largest;
  const T label_logit = logits[label];
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const T exponential = static_cast<T>(portable::exp(logits[c] - shift));
    if (gradient != nullptr) gradient[c] = exponential;
    sum += exponential;
  }
  if (gradient != nullptr) {
    const T scale = static_cast<T>(gradient_scale / sum);
    for (std::int64_t c = 0; c < classes; ++c) gradient[c] *= scale;
    gradient[label] -= static_cast<T>(gradient_scale);
  }
  return {portable::log(sum) - (label_logit - shift), is_correct};
}

// Halves are computed in float.
template <typename T>
RowResult half_row_loss(const T* logits, T* gradient, std::int64_t classes, std::int64_t label, double gradient_scale) {
  std::vector<float> wide(logits, logits + classes);
  const RowResult result =
      row_loss(wide.data(), gradient == nullptr ? nullptr : wide.data(), classes, label, gradient_scale);
  if (gradient != nullptr) std::copy(wide.begin(), wide.end(), gradient);
  return result;
}

}  // namespace

void execute_softmax_cross_entropy(const kernel::SoftmaxCrossEntropy& op) {
  const std::int64_t rows = op.logits.shape()[0];
  const std::int64_t classes = op.logits.shape()[1];
  const std::int32_t* labels = elements<std::int32_t>(op.labels);
  double loss = 0;
  std::int64_t correct = 0;
  with_floating_type(op.logits.dtype(), "softmax_cross_entropy", [&]<typename T>() {
    for (std::int64_t row = 0; row < rows; ++row) {
      if (labels[row] < 0 || labels[row] >= classes) {
        throw RunError(fmt::format("row {} has label {}, must be from 0 to {}", row, labels[row], classes - 1));
      }
      T* gradient = op.gradient ? elements<T>(op.gradient) + row * classes : nullptr;
      const T* logits = elements<T>(op.logits) + row * classes;
      RowResult result;
      if constexpr (is_half<T>) {
        result = half_row_loss(logits, gradient, classes, labels[row], op.gradient_scale);
      } else {
        result = row_loss(logits, gradient, classes, labels[row], op.gradient_scale);
      }
      loss += result.cross_entropy;
      correct += result.is_correct ? 1 : 0;
    }
    *elements<T>(op.loss) = static_cast<T>(op.loss_scale * loss);
  });
  if (op.correct) {
    with_type(op.correct.dtype(), "softmax_cross_entropy's correct",
              [&]<typename T>() { *elements<T>(op.correct) = static_cast<T>(correct); });
  }
}

}  // namespace tandem
