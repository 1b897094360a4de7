// Every kernel that is data is the same after it has been sent.
#include "engine/mpi/remote/wire_op.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/kernel_fields.h"
#include "engine/kernel_operands.h"
#include "engine/layer_ops.h"
#include "tests/engine/host_tensor.h"

namespace tandem::mpi {
namespace {

// Sends an op: a tensor goes as its place in a list.
Op sent(Op op) {
  std::vector<Tensor> tensors;
  ByteWriter writer;
  put_op(writer, op, [&](const Tensor& tensor) {
    writer.put(tensors.size());
    tensors.push_back(tensor);
  });
  const std::string bytes = writer.take();
  ByteReader reader(bytes);
  Op received = get_op(reader, [&] { return tensors.at(reader.get<std::size_t>()); });
  EXPECT_TRUE(reader.rest().empty()) << op.name;
  return received;
}

std::vector<Tensor> operands_of(Op& op) {
  std::vector<Tensor> operands;
  for_each_operand(op.kernel, [&](const Tensor& operand) { operands.push_back(operand); });
  return operands;
}

// One of each kernel of engine/layer_kernels.h.
std::vector<Op> layer_ops() {
  const auto f32 = [](Shape shape) { return host_tensor(DType::f32, shape); };
  const auto rows = [&] { return f32({4}); };
  const Tensor labels = host_tensor(DType::i32, {4});
  std::vector<Op> ops;
  ops.push_back(op::batched_gemm(f32({2, 3, 4}), f32({2, 5, 3}), f32({2, 4, 5}), true, true, 0.5, 2));
  ops.push_back(op::softmax(f32({4, 3}), f32({4, 3}), {.scale = 0.5, .queries = 2, .first_query = 1}));
  ops.push_back(op::softmax_gradient(f32({4, 3}), f32({4, 3}), f32({4, 3}), 0.5));
  ops.push_back(op::normalize(f32({4, 3}), f32({4, 2}), f32({4, 3}), f32({3}), Tensor(), 0.25));
  ops.push_back(op::normalize_gradient(f32({4, 3}), f32({4, 3}), f32({4, 3}), f32({4, 2}), f32({3}), false));
  ops.push_back(op::normalize_parameter_gradients(f32({3}), f32({3}), f32({4, 3}), f32({4, 3}), f32({4, 2}), true));
  ops.push_back(op::activate(kernel::Activation::silu, f32({3}), f32({3})));
  ops.push_back(op::activation_gradient(kernel::Activation::silu, f32({3}), f32({3}), f32({3})));
  ops.push_back(op::dropout(f32({3}), f32({3}), 0.5, 9,
                            {.first = 1, .offset = 2, .sizes = {1, 3, 4, 5}, .strides = {60, 20, 5, 1}}));
  ops.push_back(op::gather_rows(f32({4, 2}), f32({3, 2}), labels, 7, true));
  ops.push_back(op::add_rows(f32({3, 2}), f32({4, 2}), labels, 7));
  ops.push_back(op::copy_strided(f32({7}), f32({7}),
                                 {.sizes = {1, 1, 2, 3},
                                  .to_first = 1,
                                  .from_first = 0,
                                  .to_strides = {0, 0, 3, 1},
                                  .from_strides = {0, 0, 1, 2}}));
  ops.push_back(
      op::rotary(f32({4, 4}), f32({4, 4}), {.width = 4, .positions = 3, .first = 2, .base = 50, .backward = true}));
  ops.push_back(op::row_maxima(rows(), f32({4, 3})));
  ops.push_back(op::exponential_sums(rows(), rows(), f32({4, 3}), rows(), labels, 6));
  ops.push_back(op::divided_cross_entropy({.loss = f32({1}),
                                           .gradient = Tensor(),
                                           .logits = f32({4, 3}),
                                           .maxima = rows(),
                                           .sums = rows(),
                                           .targets = rows(),
                                           .labels = labels,
                                           .first = 6,
                                           .loss_scale = 0.5,
                                           .gradient_scale = 0.125}));
  ops.push_back(op::largest_of_rows(f32({4, 3}), f32({4, 3}), 2));
  ops.push_back(op::dispatch_rows(f32({3, 4, 2}), f32({4, 2}), f32({4, 3}), true));
  ops.push_back(op::combine_rows(f32({4, 2}), f32({3, 4, 2}), f32({4, 3}), true));
  ops.push_back(op::expert_weight_gradients(f32({4, 3}), f32({3, 4, 2}), f32({4, 2}), f32({4, 3})));
  ops.push_back(op::raise_maximum(f32({1}), f32({4, 3})));
  ops.push_back(op::quantise(f32({4, 3}), f32({4, 3}),
                             {.format = SmallFloat::e2m1, .scale = ScaleType::e4m3, .rows = 2, .columns = 3},
                             f32({1})));
  return ops;
}

// The bytes of all fields.
std::string fields_of(const Op& op) {
  ByteWriter writer;
  for_each_field(op.kernel, [&](const auto& field) { writer.put(field); });
  return writer.take();
}

template <typename Kernel>
const Kernel& kernel_of(const Op& op) {
  return std::get<Kernel>(op.kernel);
}

TEST(WireOp, OperandsAndFieldsOfEveryKernelArrive) {
  const auto f32 = [](Shape shape) { return host_tensor(DType::f32, shape); };
  const auto i64 = [](Shape shape) { return host_tensor(DType::i64, shape); };
  const Tensor labels = host_tensor(DType::i32, {4});
  std::vector<Op> ops;
  ops.push_back(op::gemm(f32({2, 3}), f32({4, 2}), f32({3, 4}), true, true, 0.5, 2));
  ops.push_back(op::fill(f32({3}), 7));
  ops.push_back(op::elementwise(kernel::Binary::divide, f32({3}), f32({3}), f32({3})));
  ops.push_back(op::scale_add(f32({3}), f32({3}), -0.25, 3));
  ops.push_back(op::square_root(f32({3}), f32({3}), 0.5, 3));
  ops.push_back(op::relu(f32({3}), f32({3})));
  ops.push_back(op::relu_gradient(f32({3}), f32({3}), f32({3})));
  ops.push_back(op::add_bias(f32({2, 3}), f32({3})));
  ops.push_back(op::sum_axis(f32({3}), f32({2, 3}), 0));
  ops.push_back(op::softmax_cross_entropy({.loss = f32({1}),
                                           .gradient = f32({4, 5}),
                                           .correct = Tensor(),
                                           .logits = f32({4, 5}),
                                           .labels = labels,
                                           .loss_scale = 0.5,
                                           .gradient_scale = 0.125}));
  ops.push_back(op::cast(i64({3}), f32({3})));
  ops.push_back(op::scatter_rows(kernel::Scatter::maximum, f32({4, 2}), f32({3, 2}), i64({3})));
  ops.push_back(op::place_along(f32({2, 5}), f32({2, 3}), 1, 2));
  ops.push_back(op::copy_many({f32({2}), f32({3})}, {f32({2}), f32({3})}));
  ops.push_back(op::largest(f32({1}), f32({4})));
  ops.push_back(op::top_k(f32({2}), i64({2}), f32({4})));
  for (Op& op : layer_ops()) ops.push_back(std::move(op));
  std::set<std::size_t> kinds;
  for (Op& op : ops) {
    op.category = Category::update;
    Op received = sent(op);
    EXPECT_EQ(received.kernel.index(), op.kernel.index());
    EXPECT_EQ(received.name, op.name);
    EXPECT_EQ(received.category, Category::update);
    EXPECT_EQ(received.cost.flops, op.cost.flops);
    EXPECT_EQ(received.cost.bytes, op.cost.bytes);
    EXPECT_EQ(fields_of(received), fields_of(op)) << op.name;
    const std::vector<Tensor> before = operands_of(op), after = operands_of(received);
    ASSERT_EQ(after.size(), before.size()) << op.name;
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(static_cast<bool>(after[i]), static_cast<bool>(before[i])) << op.name;
      EXPECT_TRUE(after[i].is_same(before[i])) << op.name << ", operand " << i;
    }
    kinds.insert(op.kernel.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Kernel> - 2) << "all but functions";
}

TEST(WireOp, FieldsKeepTheirValues) {
  const auto f32 = [](Shape shape) { return host_tensor(DType::f32, shape); };
  const Op product = sent(op::gemm(f32({2, 3}), f32({4, 2}), f32({4, 3}), true, false, 0.5, 2));
  const auto& gemm = kernel_of<kernel::Gemm>(product);
  EXPECT_EQ(gemm.m, 2);
  EXPECT_EQ(gemm.n, 3);
  EXPECT_EQ(gemm.k, 4);
  EXPECT_TRUE(gemm.transpose_a);
  EXPECT_FALSE(gemm.transpose_b);
  EXPECT_EQ(gemm.alpha, 0.5);
  EXPECT_EQ(gemm.beta, 2);
  Op placing = op::place_along(f32({2, 5}), f32({2, 3}), 1, 2);
  const Op placed = sent(placing);
  const auto &blocks = kernel_of<kernel::CopyBlocks>(placed), &wanted = kernel_of<kernel::CopyBlocks>(placing);
  EXPECT_EQ(blocks.count, wanted.count);
  EXPECT_EQ(blocks.elements, wanted.elements);
  EXPECT_EQ(blocks.to_first, wanted.to_first);
  EXPECT_EQ(blocks.to_stride, wanted.to_stride);
  EXPECT_EQ(blocks.from_first, wanted.from_first);
  EXPECT_EQ(blocks.from_stride, wanted.from_stride);
  Op dropping =
      op::dropout(f32({3}), f32({3}), 0.5, 9, {.offset = 2, .sizes = {1, 3, 4, 5}, .strides = {60, 20, 5, 1}});
  const auto dropped = kernel_of<kernel::Dropout>(sent(std::move(dropping)));
  EXPECT_EQ(dropped.seed, 9);
  EXPECT_EQ(dropped.numbers.offset, 2);
  EXPECT_EQ(dropped.numbers.sizes, (std::array<std::int64_t, 4>{1, 3, 4, 5}));
  EXPECT_EQ(dropped.numbers.strides, (std::array<std::int64_t, 4>{60, 20, 5, 1}));
  EXPECT_EQ(kernel_of<kernel::SumAxis>(sent(op::sum_axis(f32({2}), f32({2, 3}), 1))).axis, 1);
  EXPECT_EQ(kernel_of<kernel::Fill>(sent(op::fill(f32({2}), 7))).value, 7);
}

}  // namespace
}  // namespace tandem::mpi
