#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/op.h"
#include "tests/engine/host_tensor.h"

namespace tandem {
namespace {

Tensor f32(Shape shape) {
  return host_tensor(DType::f32, shape);
}

void expect_cost(const Op& op, const std::string& name, double flops, double bytes) {
  EXPECT_EQ(op.name, name);
  EXPECT_EQ(op.category, Category::compute);
  EXPECT_DOUBLE_EQ(op.cost.flops, flops) << name;
  EXPECT_DOUBLE_EQ(op.cost.bytes, bytes) << name;
}

TEST(OpCost, GemmIsTwoFlopsAMultiplicationAndReadsWhatItAddsTo) {
  const Op op = op::gemm(f32({4, 6}), f32({4, 5}), f32({5, 6}));
  expect_cost(op, "gemm", 2 * 4 * 5 * 6, 4 * (4 * 5 + 5 * 6 + 4 * 6));
  expect_cost(op::gemm(f32({4, 6}), f32({5, 4}), f32({6, 5}), true, true, 1, 1), "gemm", 240,
              4 * (4 * 5 + 5 * 6 + 2 * 4 * 6));
  const auto& gemm = std::get<kernel::Gemm>(op.kernel);
  EXPECT_EQ(gemm.m, 4);
  EXPECT_EQ(gemm.n, 6);
  EXPECT_EQ(gemm.k, 5);
}

TEST(OpCost, RunsAtTheRateOfItsElementType) {
  const auto half = [](Shape shape) { return host_tensor(DType::bf16, shape); };
  const Op op = op::gemm(half({4, 6}), half({4, 5}), half({5, 6}));
  EXPECT_EQ(op.cost.dtype, DType::bf16);
  EXPECT_DOUBLE_EQ(op.cost.bytes, 2 * (20 + 30 + 24));
}

TEST(OpCost, CountsElementsReadAndWritten) {
  const Tensor a = f32({10, 3}), b = f32({10, 3}), bias = f32({3});
  expect_cost(op::fill(a, 1), "fill", 0, 120);
  expect_cost(op::elementwise(kernel::Binary::add, a, a, b), "add", 30, 360);
  expect_cost(op::elementwise(kernel::Binary::minimum, a, a, b), "minimum", 30, 360);
  expect_cost(op::square_root(a, b), "square_root", 30, 240);
  expect_cost(op::square_root(a, b, 1, 2), "square_root", 90, 240);
  expect_cost(op::relu(a, b), "relu", 30, 240);
  expect_cost(op::relu_gradient(a, b, b), "relu_gradient", 30, 360);
  expect_cost(op::add_bias(a, bias), "add_bias", 30, 252);
  expect_cost(op::sum_axis(bias, a, 0), "sum_axis", 30, 132);
  expect_cost(op::cast(host_tensor(DType::f64, {30}), a), "cast", 30, 360);
}

TEST(OpCost, ScaleAddChargesOnlyTheFactorsItHas) {
  const Tensor a = f32({10}), b = f32({10});
  expect_cost(op::scale_add(a, b, 2, 0), "scale_add", 10, 80);
  expect_cost(op::scale_add(a, b, 1, 1), "scale_add", 10, 120);
  expect_cost(op::scale_add(a, b, -0.5, 1), "scale_add", 20, 120);
  expect_cost(op::scale_add(a, b, 0.1, 0.9), "scale_add", 30, 120);
}

TEST(OpCost, LossCountsItsOptionalOutputs) {
  const Tensor loss = f32({1}), logits = f32({8, 10}), labels = host_tensor(DType::i32, {8});
  expect_cost(
      op::softmax_cross_entropy({.loss = loss, .gradient = {}, .correct = {}, .logits = logits, .labels = labels}),
      "softmax_cross_entropy", 400, 320 + 32 + 4);
  expect_cost(op::softmax_cross_entropy({.loss = loss,
                                         .gradient = f32({8, 10}),
                                         .correct = host_tensor(DType::i32, {1}),
                                         .logits = logits,
                                         .labels = labels}),
              "softmax_cross_entropy", 400, 320 + 32 + 4 + 320 + 4);
}

TEST(OpCost, HostFunctionCostsWhatItsCallerSays) {
  expect_cost(op::host_function("read", {3, 7, DType::u8}, [] {}), "read", 3, 7);
}

TEST(Op, RefusesOperandsThatDoNotFit) {
  using testing::HasSubstr;
  using testing::ThrowsMessage;
  EXPECT_THAT(
      [] {
        op::gemm(f32({4, 6}), f32({4, 5}), f32({6, 5}));
      },
      ThrowsMessage<UsageError>("gemm of [4, 5] and [6, 5] to [4, 6]"));
  EXPECT_THAT([] { op::relu(f32({3}), f32({4})); }, ThrowsMessage<UsageError>("relu of [3] and [4]"));
  EXPECT_THAT([] { op::cast(f32({3}), Tensor()); }, ThrowsMessage<UsageError>("cast without an operand"));
  EXPECT_THAT([] { op::scale_add(host_tensor(DType::i32, {3}), host_tensor(DType::i32, {3}), 0.5, 1); },
              ThrowsMessage<UsageError>(HasSubstr("by a fraction")));
  EXPECT_THAT(
      [] {
        op::sum_axis(f32({3}), f32({3, 2}), 2);
      },
      ThrowsMessage<UsageError>(HasSubstr("over an axis that")));
  EXPECT_THAT(
      [] {
        op::place_along(f32({3, 2}), f32({1, 2}), 2, 0);
      },
      ThrowsMessage<UsageError>("place_along of [1, 2] and [3, 2] along axis 2"));
  EXPECT_THAT([] { op::copy_many({f32({3})}, {}); }, ThrowsMessage<UsageError>(HasSubstr("different numbers")));
}

}  // namespace
}  // namespace tandem
