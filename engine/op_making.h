// What the functions that make ops share: the checks of their operands, and the parts of their costs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "engine/op.h"

namespace tandem::op::making {

inline double count_of(const Tensor& tensor) {
  return tensor ? static_cast<double>(tensor.element_count()) : 0;
}

inline double bytes_of(const Tensor& tensor) {
  return tensor ? static_cast<double>(tensor.size_bytes()) : 0;
}

inline bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// `to` and `other` must have one element type and as many elements.
inline void check_like(const Tensor& to, const Tensor& other, const char* name) {
  TANDEM_REQUIRE(to && other, std::string(name) + " without an operand");
  TANDEM_REQUIRE(to.dtype() == other.dtype(), std::string(name) + " of different element types");
  TANDEM_REQUIRE(to.element_count() == other.element_count(),
                 std::string(name) + " of " + to.shape().text() + " and " + other.shape().text());
}

// Requires floating-point numbers.
inline void check_floating(const Tensor& tensor, const char* name) {
  TANDEM_REQUIRE(tensor, std::string(name) + " without an operand");
  TANDEM_REQUIRE(is_floating(tensor.dtype()), std::string(name) + " of integers");
}

// Requires operands of floating-point numbers of one element type; empty tensors are missing operands.
inline void check_floating(std::initializer_list<const Tensor*> operands, const char* name) {
  for (const Tensor* operand : operands) {
    check_floating(*operand, name);
    TANDEM_REQUIRE(operand->dtype() == (*operands.begin())->dtype(), std::string(name) + " of different element types");
  }
}

inline void check_shape(const Tensor& tensor, const Shape& shape, const char* name) {
  TANDEM_REQUIRE(tensor.shape() == shape,
                 std::string(name) + " of " + tensor.shape().text() + ", must be " + shape.text());
}

inline void check_count(const Tensor& tensor, std::int64_t count, const char* name) {
  TANDEM_REQUIRE(tensor.element_count() == count, std::string(name) + " of " + tensor.shape().text() + ", must have " +
                                                      std::to_string(count) + " elements");
}

// Returns the length of the last axis.
inline std::int64_t columns_of(const Tensor& tensor, const char* name) {
  TANDEM_REQUIRE(tensor.shape().rank() >= 1, std::string(name) + " of a scalar");
  return tensor.shape()[tensor.shape().rank() - 1];
}

inline std::int64_t rows_of(const Tensor& tensor, std::int64_t columns) {
  return columns == 0 ? 0 : tensor.element_count() / columns;
}

inline void check_matrix(const Tensor& tensor, const char* name) {
  TANDEM_REQUIRE(tensor.shape().rank() == 2, std::string(name) + " of " + tensor.shape().text() + ", must be a matrix");
}

inline void check_indices(const Tensor& indices, std::int64_t rows, const char* name) {
  TANDEM_REQUIRE(indices, std::string(name) + " without an operand");
  TANDEM_REQUIRE(indices.dtype() == DType::i32 && indices.element_count() == rows,
                 std::string(name) + " needs one i32 number a row");
}

inline Op make(Name name, OpCost cost, Kernel&& kernel) {
  return {.name = name, .category = Category::compute, .cost = cost, .kernel = std::move(kernel)};
}

}  // namespace tandem::op::making
