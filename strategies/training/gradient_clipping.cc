#include "strategies/training/gradient_clipping.h"

#include "engine/op.h"
#include "strategies/cross_device/copies.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

Tensor like(const Tensor& tensor) {
  return tensor.device().allocate(tensor.dtype(), tensor.shape());
}

void launch(const Tensor& result, Op op) {
  result.device().compute_stream().launch(as_update(std::move(op)));
}

const Tensor& elements_of(const Value& gradient) {
  return gradient.is(ValueKind::sparse) ? gradient.slices().values : gradient.tensor();
}

Value with_elements(const Value& gradient, const Tensor& elements) {
  if (!gradient.is(ValueKind::sparse)) return elements;
  return IndexedSlices{elements, gradient.slices().indices, gradient.slices().dense_shape};
}

Tensor sum_of_squares(const Tensor& tensor) {
  const Tensor squares = like(tensor);
  launch(squares, op::elementwise(kernel::Binary::multiply, squares, tensor, tensor));
  Tensor sum = tensor.device().allocate(tensor.dtype(), {1});
  launch(sum, op::sum_axis(sum, squares.reshape({squares.element_count()}), 0));
  return sum;
}

// limit / max(norm, limit), in place of the norm's square.
void make_factor(const Tensor& square, double limit) {
  const Tensor bound = like(square);
  launch(bound, op::fill(bound, limit));
  launch(square, op::square_root(square, square));
  launch(square, op::elementwise(kernel::Binary::maximum, square, square, bound));
  launch(square, op::elementwise(kernel::Binary::divide, square, bound, square));
}

// The product with a number that only the device knows: a matrix product of depth one.
Tensor multiplied(const Tensor& tensor, const Tensor& factor) {
  Tensor product = like(tensor);
  const Shape column{tensor.element_count(), 1};
  if (tensor.element_count() == 0) return product;
  launch(product, op::gemm(product.reshape(column), tensor.reshape(column), factor.reshape({1, 1})));
  return product;
}

const Value& part_of(const Value& gradient, std::size_t device) {
  return gradient.is_distributed() ? gradient.parts().at(device) : gradient;
}

}  // namespace

Value clipped_by_value(const Value& gradient, double limit) {
  const Tensor& elements = elements_of(gradient);
  const Tensor bound = like(elements), result = like(elements);
  launch(bound, op::fill(bound, limit));
  launch(result, op::elementwise(kernel::Binary::minimum, result, elements, bound));
  launch(bound, op::fill(bound, -limit));
  launch(result, op::elementwise(kernel::Binary::maximum, result, result, bound));
  return with_elements(gradient, result);
}

Value clipped_by_norm(const Value& gradient, double limit) {
  const Tensor& elements = elements_of(gradient);
  const Tensor factor = sum_of_squares(elements);
  make_factor(factor, limit);
  return with_elements(gradient, multiplied(elements, factor));
}

void clip_by_global_norm(std::vector<Value>& gradients, double limit) {
  std::size_t devices = 1;
  for (const Value& gradient : gradients) {
    if (gradient.is_distributed()) devices = gradient.parts().size();
  }
  std::vector<Value::Parts> clipped(gradients.size());
  for (std::size_t device = 0; device < devices; ++device) {
    Tensor total;
    for (const Value& gradient : gradients) {
      const Tensor square = sum_of_squares(elements_of(part_of(gradient, device)));
      if (!total) {
        total = square;
      } else {
        const Tensor here = copy_on(total.device(), square);
        const Tensor summand = here.dtype() == total.dtype() ? here : like(total);
        if (!summand.is_same(here)) launch(summand, op::cast(summand, here));
        launch(total, op::elementwise(kernel::Binary::add, total, total, summand));
      }
    }
    make_factor(total, limit);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (device > 0 && !gradients[i].is_distributed()) continue;
      const Value& part = part_of(gradients[i], device);
      const Tensor& elements = elements_of(part);
      Tensor factor = copy_on(elements.device(), total);
      if (factor.dtype() != elements.dtype()) {
        const Tensor converted = elements.device().allocate(elements.dtype(), {1});
        launch(converted, op::cast(converted, factor));
        factor = converted;
      }
      clipped[i].push_back(with_elements(part, multiplied(elements, factor)));
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = gradients[i].is_distributed() ? Value::mirrored(std::move(clipped[i])) : clipped[i].front();
  }
}

}  // namespace tandem
