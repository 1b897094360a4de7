// Numbers of 16 bits round alike on every engine: to nearest, ties to even.
#include <cstring>
#include <limits>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using Bits = std::vector<std::uint16_t>;

Tensor put_bits(Worker& worker, Device& device, DType dtype, const Bits& bits) {
  const Tensor host = worker.cpu().allocate(dtype, {static_cast<std::int64_t>(bits.size())});
  std::memcpy(host.data(), bits.data(), host.size_bytes());
  Tensor tensor = device.allocate(dtype, host.shape());
  device.compute_stream().copy(tensor, host, Category::input);
  return tensor;
}

Bits get_bits(Worker& worker, const Tensor& tensor) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().compute_stream().copy(host, tensor, Category::other);
  tensor.device().compute_stream().synchronize();
  Bits bits(static_cast<std::size_t>(host.element_count()));
  std::memcpy(bits.data(), host.data(), host.size_bytes());
  return bits;
}

Bits bits_after_cast(Worker& worker, DType dtype, const std::vector<float>& values) {
  Device& device = *worker.devices()[0];
  const Tensor a = put(worker, device, values);
  const Tensor to = device.allocate(dtype, a.shape());
  device.compute_stream().launch(op::cast(to, a));
  return get_bits(worker, to);
}

std::vector<float> floats_of(Worker& worker, DType dtype, const Bits& bits) {
  Device& device = *worker.devices()[0];
  const Tensor a = put_bits(worker, device, dtype, bits);
  const Tensor to = device.allocate(DType::f32, a.shape());
  device.compute_stream().launch(op::cast(to, a));
  return get(worker, to);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_P(EveryEngine, HasHalves) {
  run(1, 1, [](Worker& worker) {
    EXPECT_THAT(worker.capabilities().dtypes, testing::IsSupersetOf({DType::f16, DType::bf16}));
  });
}

TEST_P(EveryEngine, CastsToF16ToNearestEven) {
  run(1, 1, [](Worker& worker) {
    const std::vector<std::pair<float, int>> cases = {
        {1, 0x3c00},
        {-0.0F, 0x8000},
        {0x1.002p0F, 0x3c00},       // a tie: down to even
        {0x1.006p0F, 0x3c02},       // a tie: up to even
        {0x1.002002p0F, 0x3c01},    // just above a tie
        {0x1.ffcp15F, 0x7bff},      // the largest number, 65504
        {0x1.ffdffep15F, 0x7bff},   // just below 65520
        {0x1.ffep15F, 0x7c00},      // 65520 is half-way to 2^16
        {-1e6F, 0xfc00},            // overflow
        {kInfinity, 0x7c00},        //
        {0x1p-14F, 0x0400},         // the smallest normal number
        {0x1.ff8p-15F, 0x03ff},     // the largest subnormal one
        {0x1.ffcp-15F, 0x0400},     // a tie between the two
        {-0x1p-24F, 0x8001},        // the smallest subnormal number
        {0x1p-25F, 0x0000},         // a tie: down to zero
        {0x1.8p-24F, 0x0002},       // a tie: up to even
        {0x1.000002p-25F, 0x0001},  // just above a tie
        {0x1p-149F, 0x0000},        // underflow
    };
    std::vector<float> values;
    Bits expected;
    for (const auto& [value, bits] : cases) {
      values.push_back(value);
      expected.push_back(static_cast<std::uint16_t>(bits));
    }
    EXPECT_THAT(bits_after_cast(worker, DType::f16, values), ElementsAreArray(expected));
  });
}

TEST_P(EveryEngine, CastsToBf16ToNearestEven) {
  run(1, 1, [](Worker& worker) {
    const std::vector<std::pair<float, int>> cases = {
        {1, 0x3f80},
        {-0.0F, 0x8000},
        {0x1.01p0F, 0x3f80},                          // a tie: down to even
        {0x1.03p0F, 0x3f82},                          // a tie: up to even
        {0x1.010002p0F, 0x3f81},                      // just above a tie
        {0x1.fep127F, 0x7f7f},                        // the largest number
        {std::numeric_limits<float>::max(), 0x7f80},  // overflow
        {-kInfinity, 0xff80},                         //
        {0x1p-126F, 0x0080},                          // the smallest normal number
        {0x1p-133F, 0x0001},                          // the smallest subnormal one
    };
    std::vector<float> values;
    Bits expected;
    for (const auto& [value, bits] : cases) {
      values.push_back(value);
      expected.push_back(static_cast<std::uint16_t>(bits));
    }
    EXPECT_THAT(bits_after_cast(worker, DType::bf16, values), ElementsAreArray(expected));
  });
}

// Also through a sum, a copy and a collective.
TEST_P(EveryEngine, KeepsNanAndInfinitiesInHalves) {
  run(2, 1, [](Worker& worker) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const Bits bits = bits_after_cast(worker, dtype, {nan, kInfinity, -kInfinity});
      const std::vector<float> back = floats_of(worker, dtype, bits);
      EXPECT_THAT(back, ElementsAre(testing::IsNan(), kInfinity, -kInfinity)) << name_of(dtype);
      const std::vector<Tensor> sums{put_bits(worker, *worker.devices()[0], dtype, bits)};
      worker.communicator(all_devices(worker)).all_reduce(sums, Reduction::sum, streams_of(worker, kComputeStream));
      const std::vector<float> sum = floats_of(worker, dtype, get_bits(worker, sums[0]));
      EXPECT_THAT(sum, ElementsAre(testing::IsNan(), kInfinity, -kInfinity)) << name_of(dtype);
    }
  });
}

TEST_P(EveryEngine, CastsEveryHalfToFloatAndBack) {
  run(1, 1, [](Worker& worker) {
    for (const auto& [dtype, infinity] : {std::pair(DType::f16, 0x7c00), std::pair(DType::bf16, 0x7f80)}) {
      Bits bits;
      for (int sign : {0, 0x8000}) {
        for (int magnitude = 0; magnitude <= infinity; ++magnitude) {
          bits.push_back(static_cast<std::uint16_t>(sign | magnitude));
        }
      }
      EXPECT_EQ(bits_after_cast(worker, dtype, floats_of(worker, dtype, bits)), bits) << name_of(dtype);
    }
  });
}

// Each op computes in f32 and rounds its result once: 256 + 1 is a tie of bf16, and so is the factor 257/256.
TEST_P(EveryEngine, ComputesHalvesInF32) {
  run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    Stream& stream = device.compute_stream();
    const auto tensor = [&](const std::vector<float>& values) {
      return put_bits(worker, device, DType::bf16, bits_after_cast(worker, DType::bf16, values));
    };
    const auto values_of = [&](const Tensor& t) { return floats_of(worker, DType::bf16, get_bits(worker, t)); };
    const Tensor a = tensor({256, 3, -8}), b = tensor({1, 2, 0.5}), to = tensor({0, 0, 0});
    stream.launch(op::elementwise(kernel::Binary::add, to, a, b));
    EXPECT_THAT(values_of(to), ElementsAre(256, 5, -7.5));
    stream.launch(op::elementwise(kernel::Binary::divide, to, a, b));
    EXPECT_THAT(values_of(to), ElementsAre(256, 1.5, -16));
    stream.launch(op::elementwise(kernel::Binary::maximum, to, a, b));
    EXPECT_THAT(values_of(to), ElementsAre(256, 3, 0.5));
    stream.launch(op::relu(to, a));
    EXPECT_THAT(values_of(to), ElementsAre(256, 3, 0));
    stream.launch(op::fill(to, -256));
    stream.launch(op::scale_add(to, tensor({256, 128, 0}), 257.0 / 256, 1));
    EXPECT_THAT(values_of(to), ElementsAre(1, -127.5, -256));
    stream.launch(op::fill(to, 256));
    stream.launch(op::scale_add(to, b, 1, 1));  // 257, 258 and 256.5
    EXPECT_THAT(values_of(to), ElementsAre(256, 258, 256));
    // 256 ones more than 256: a sum that were rounded at every addition would stay 256.
    const Tensor row = device.allocate(DType::bf16, {257}), sum = device.allocate(DType::bf16, {1});
    stream.launch(op::fill(row, 1));
    stream.launch(op::fill(row.slice(0, 1), 256));
    stream.launch(op::sum_axis(sum, row, 0));
    EXPECT_THAT(values_of(sum), ElementsAre(512));
  });
}

// Ranks 0 to 3 have -1.5, -0.5, 0.5 and 1.5: their sums are exact in any order.
TEST_P(EveryEngine, ReducesHalvesInEveryCollective) {
  run(2, 2, [](Worker& worker) {
    Communicator& communicator = worker.communicator(all_devices(worker));
    const std::vector<Stream*> streams = streams_of(worker, kComputeStream);
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const std::int64_t count : {3, 3000}) {
        const auto ranks = [&](std::int64_t elements) {
          std::vector<Tensor> tensors;
          for (std::size_t i = 0; i < 2; ++i) {
            Device& device = *worker.devices()[i];
            tensors.push_back(device.allocate(dtype, {elements}));
            device.compute_stream().launch(op::fill(tensors.back(), communicator.local_ranks()[i] - 1.5));
          }
          return tensors;
        };
        const auto expect = [&](const std::vector<Tensor>& tensors, float value, const char* what) {
          for (const Tensor& tensor : tensors) {
            EXPECT_THAT(floats_of(worker, dtype, get_bits(worker, tensor.reshape({tensor.element_count()}))),
                        Each(value))
                << what << " of " << count << " " << name_of(dtype);
          }
        };
        std::vector<Tensor> buffers = ranks(count);
        communicator.all_reduce(buffers, Reduction::sum, streams);
        expect(buffers, 0, "sum");
        buffers = ranks(count);
        communicator.all_reduce(buffers, Reduction::maximum, streams);
        expect(buffers, 1.5, "maximum");
        buffers = ranks(count);
        communicator.all_reduce(buffers, Reduction::minimum, streams);
        expect(buffers, -1.5, "minimum");
        buffers = ranks(count);
        const std::vector<Tensor> wide = ranks(4 * count);
        communicator.reduce_scatter(buffers, wide, Reduction::maximum, streams);
        expect(buffers, 1.5, "scattered maximum");
        communicator.all_gather(wide, buffers, streams);
        expect(wide, 1.5, "gathered maximum");
      }
    }
  });
}

}  // namespace
}  // namespace tandem
