// What compression needs: the largest elements, the largest of all, and sums of elements that indices name.
#include <limits>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::ElementsAre;

class EveryEngineSelects : public EveryEngine {
 protected:
  // `program` gets a device that selects: a compute device, or the host of an engine whose GPUs do not.
  void run_on_device(const std::function<void(Worker&, Device&)>& program) {
    run(1, 1, [&](Worker& worker) {
      program(worker, worker.capabilities().selection_kernels ? *worker.devices()[0] : worker.cpu());
    });
  }
};

std::vector<std::int64_t> indices_of(Worker& worker, const Tensor& tensor) {
  const Tensor host = worker.cpu().allocate(DType::i64, tensor.shape());
  tensor.device().compute_stream().copy(host, tensor, Category::other);
  tensor.device().compute_stream().synchronize();
  const std::span<std::int64_t> values = host.values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST_P(EveryEngineSelects, FirstOfEqualMagnitudes) {
  run_on_device([](Worker& worker, Device& device) {
    const Tensor a = put(worker, device, {1, -3, 2, 3, -2, 0, 3});
    const std::vector<std::vector<std::int64_t>> orders = {{}, {1}, {1, 3}, {1, 3, 6, 2}, {1, 3, 6, 2, 4, 0, 5}};
    for (const std::vector<std::int64_t>& expected : orders) {
      const auto k = static_cast<std::int64_t>(expected.size());
      const Tensor values = device.allocate(DType::f32, {k}), indices = device.allocate(DType::i64, {k});
      device.compute_stream().launch(op::top_k(values, indices, a));
      EXPECT_EQ(indices_of(worker, indices), expected);
      const std::vector<float> all = {1, -3, 2, 3, -2, 0, 3};
      std::vector<float> of_indices;
      for (const std::int64_t index : expected) of_indices.push_back(all[static_cast<std::size_t>(index)]);
      EXPECT_EQ(get(worker, values), of_indices);
    }
  });
}

TEST_P(EveryEngineSelects, NanBeforeInfinity) {
  run_on_device([](Worker& worker, Device& device) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const Tensor a = put(worker, device, {1, -infinity, nan, 5});
    const Tensor values = device.allocate(DType::f32, {3}), indices = device.allocate(DType::i64, {3});
    device.compute_stream().launch(op::top_k(values, indices, a));
    EXPECT_THAT(indices_of(worker, indices), ElementsAre(2, 1, 3));
    const Tensor most = device.allocate(DType::f32, {1});
    device.compute_stream().launch(op::largest(most, a));
    EXPECT_THAT(get(worker, most), ElementsAre(testing::IsNan()));
  });
}

TEST_P(EveryEngineSelects, LargestElementAndMagnitude) {
  run_on_device([](Worker& worker, Device& device) {
    const Tensor a = put(worker, device, {1, -7, 2, 3}), most = device.allocate(DType::f32, {1});
    device.compute_stream().launch(op::largest(most, a));
    EXPECT_THAT(get(worker, most), ElementsAre(3));
    device.compute_stream().launch(op::largest_magnitude(most, a));
    EXPECT_THAT(get(worker, most), ElementsAre(7));
    const Tensor half = device.allocate(DType::bf16, {4}), most_half = device.allocate(DType::bf16, {1});
    device.compute_stream().launch(op::cast(half, a));
    device.compute_stream().launch(op::largest_magnitude(most_half, half));
    device.compute_stream().launch(op::cast(most, most_half));
    EXPECT_THAT(get(worker, most), ElementsAre(7));
  });
}

// What top_k has taken goes back to its places; an index that occurs twice adds twice.
TEST_P(EveryEngineSelects, AddsValuesAtIndices) {
  run_on_device([](Worker& worker, Device& device) {
    const Tensor a = put(worker, device, {1, -3, 2, 4});
    const Tensor values = device.allocate(DType::f32, {2}), indices = device.allocate(DType::i64, {2});
    const Tensor dense = put(worker, device, {10, 10, 10, 10});
    device.compute_stream().launch(op::top_k(values, indices, a));
    for (int i = 0; i < 2; ++i) {
      device.compute_stream().launch(op::scatter_rows(kernel::Scatter::add, dense, values, indices));
    }
    EXPECT_THAT(get(worker, dense), ElementsAre(10, 4, 10, 18));
  });
}

TEST_P(EveryEngineSelects, RefusesMoreThanThereAre) {
  run_on_device([](Worker&, Device& device) {
    const Tensor a = device.allocate(DType::f32, {3}), values = device.allocate(DType::f32, {4});
    EXPECT_THAT([&] { op::top_k(values, device.allocate(DType::i64, {4}), a); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr("top_k of 4 of [3]")));
    EXPECT_THAT([&] { op::top_k(values, device.allocate(DType::i32, {4}), a); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr("indices of i64")));
    EXPECT_THAT([&] { op::largest(values, a); }, testing::ThrowsMessage<UsageError>(testing::HasSubstr("one element")));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineSelects, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
