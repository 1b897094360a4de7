// What is checked before a kernel is launched, on memory that pretends to be a GPU's.
#include "engine/cuda/device/cuda_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/host_tensor.h"

namespace tandem::cuda {
namespace {

using testing::ThrowsMessage;

// By its length: elements 0 to 9 are on GPU 0, 10 to 19 on GPU 1, and so on; 100 and more on the host.
int place_by_length(const Tensor& tensor) {
  return tensor.element_count() >= 100 ? kHostPlace : static_cast<int>(tensor.element_count() / 10);
}

void check_at(int place, const Op& op) {
  check_operands(op.kernel, place, place_by_length);
}

TEST(CudaOperands, AreOnTheGpuOrTheHost) {
  const Tensor on_0 = host_tensor(DType::f32, {4}), on_1 = host_tensor(DType::f32, {12});
  const Tensor on_host = host_tensor(DType::f32, {100});
  check_at(0, op::relu(on_0, on_0));
  check_at(1, op::relu(on_1, on_1));
  check_at(1, op::relu(on_host, on_host));
  check_at(kHostPlace, op::relu(on_host, on_host));
}

TEST(CudaOperands, OutOfReachAreNamed) {
  const Tensor on_0 = host_tensor(DType::f32, {4}), on_1 = host_tensor(DType::f32, {3, 4});
  EXPECT_THAT([&] { check_at(1, op::fill(on_0, 1)); },
              ThrowsMessage<RunError>("an operand [4] is on GPU 0, out of reach of GPU 1"));
  EXPECT_THAT([&] { check_at(kHostPlace, op::sum_axis(on_0, on_1, 0)); },
              ThrowsMessage<RunError>("an operand [4] is on GPU 0, out of reach of the host"));
  EXPECT_THAT([&] { check_at(0, op::sum_axis(on_0, on_1, 0)); },
              ThrowsMessage<RunError>("an operand [3, 4] is on GPU 1, out of reach of GPU 0"));
}

TEST(CudaOperands, OptionalOnesMayBeMissing) {
  check_at(0, op::softmax_cross_entropy({.loss = host_tensor(DType::f32, {1}),
                                         .gradient = {},
                                         .correct = {},
                                         .logits = host_tensor(DType::f32, {2, 3}),
                                         .labels = host_tensor(DType::i32, {2})}));
  check_at(0, op::host_function("nothing", {}, [] {}));
}

TEST(CudaFaults, SayWhatTheCpuEngineSays) {
  EXPECT_EQ(fault_text({.kind = Fault::label, .index = 1, .value = 2, .bound = 2}),
            "row 1 has label 2, must be from 0 to 1");
  EXPECT_EQ(fault_text({.kind = Fault::row, .index = 0, .value = 9, .bound = 4}), "scatter_rows to row 9 of 4");
  EXPECT_EQ(fault_text({.kind = Fault::division_by_zero}), "an integer is divided by zero");
}

}  // namespace
}  // namespace tandem::cuda
