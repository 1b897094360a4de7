// Collectives give the same values on every engine.
#include <cstring>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::ElementsAre;

std::vector<float> expected_sum(const std::vector<std::vector<float>>& all) {
  std::vector<float> sum(all.front().size());
  for (const std::vector<float>& values : all) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

std::vector<float> values_of_rank(int rank, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(rank * 10) + static_cast<float>(i % 7));
  return values;
}

void try_collectives(Worker& worker, std::size_t count) {
  Communicator& communicator = worker.communicator(all_devices(worker));
  const auto n = static_cast<std::size_t>(communicator.size());
  const std::vector<Stream*> streams = streams_of(worker, kComputeStream);
  std::vector<std::vector<float>> small, large;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    small.push_back(values_of_rank(rank, count));
    large.push_back(values_of_rank(rank, count * n));
  }
  const auto on_devices = [&](const std::vector<std::vector<float>>& all) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < worker.devices().size(); ++i) {
      const auto rank = static_cast<std::size_t>(communicator.local_ranks()[i]);
      tensors.push_back(put(worker, *worker.devices()[i], all[rank]));
    }
    return tensors;
  };
  const auto expect = [&](const std::vector<Tensor>& tensors, auto expected, const char* what) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int rank = communicator.local_ranks()[i];
      EXPECT_EQ(get(worker, tensors[i]), expected(static_cast<std::size_t>(rank))) << what << " on rank " << rank;
    }
  };
  std::vector<float> sum = expected_sum(small), large_sum = expected_sum(large);
  const auto part_of = [&](const std::vector<float>& whole, std::size_t rank) {
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(rank * count);
    return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(count));
  };

  std::vector<Tensor> buffers = on_devices(small);
  communicator.all_reduce(buffers, Reduction::sum, streams);
  expect(
      buffers, [&](std::size_t) { return sum; }, "all_reduce");
  buffers = on_devices(small);
  communicator.all_reduce(buffers, Reduction::minimum, streams);
  expect(
      buffers, [&](std::size_t) { return small[0]; }, "all_reduce of the minimum");
  buffers = on_devices(small);
  communicator.reduce(buffers, Reduction::sum, 1, streams);
  expect(
      buffers, [&](std::size_t rank) { return rank == 1 ? sum : small[rank]; }, "reduce");
  buffers = on_devices(small);
  communicator.broadcast(buffers, 1, streams);
  expect(
      buffers, [&](std::size_t) { return small[1]; }, "broadcast");
  std::vector<Tensor> wide = on_devices(large);
  buffers = on_devices(small);
  communicator.reduce_scatter(buffers, wide, Reduction::sum, streams);
  expect(
      buffers, [&](std::size_t rank) { return part_of(large_sum, rank); }, "reduce_scatter");
  communicator.all_gather(wide, buffers, streams);
  expect(
      wide, [&](std::size_t) { return large_sum; }, "all_gather");
  wide = on_devices(large);
  const std::vector<Tensor> exchanged = on_devices(large);
  communicator.all_to_all(exchanged, wide, streams);
  const auto column = [&](std::size_t rank) {  // part `rank` of every rank, in rank order
    std::vector<float> parts;
    for (const std::vector<float>& values : large) {
      const std::vector<float> part = part_of(values, rank);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    return parts;
  };
  expect(exchanged, column, "all_to_all");
  expect(
      wide, [&](std::size_t rank) { return large[rank]; }, "the input of all_to_all");
}

TEST_P(EveryEngine, CollectivesAreExact) {
  run(2, 2, [](Worker& worker) {
    for (const std::size_t count : {0, 1, 3, 1000}) try_collectives(worker, count);
  });
  run(1, 3, [](Worker& worker) { try_collectives(worker, 5); });
}

// Two groups have workers 1 and 2 in common, which issue the calls of both on different streams and in opposite orders.
TEST_P(EveryEngine, TwoGroupsMeetOnStreamsOfTheirOwn) {
  run(3, 1, [](Worker& worker) {
    const std::vector<DeviceId> ids = all_devices(worker);
    const auto all_reduce = [&](std::span<const DeviceId> group, int stream, const Tensor& tensor) {
      const std::vector<Tensor> buffers{tensor};
      worker.communicator(group).all_reduce(buffers, Reduction::sum, streams_of(worker, stream));
    };
    Device& device = *worker.devices()[0];
    for (int round = 0; round < 20; ++round) {
      const Tensor of_all = put(worker, device, {1, 2}), of_two = put(worker, device, {3, 4, 5});
      device.compute_stream().synchronize();
      const auto call_all = [&] { all_reduce(ids, kComputeStream, of_all); };
      const auto call_two = [&] { all_reduce(std::span(ids).subspan(1), kCommunicationStream, of_two); };
      if (worker.index() == 1) call_two();
      call_all();
      if (worker.index() == 2) call_two();
      device.synchronize();
      EXPECT_EQ(get(worker, of_all), (std::vector<float>{3, 6}));
      const float parts = worker.index() == 0 ? 1 : 2;
      EXPECT_EQ(get(worker, of_two), (std::vector<float>{3 * parts, 4 * parts, 5 * parts}));
    }
  });
}

// From device to device: within worker 0, from it to worker 1, and within that one.
TEST_P(EveryEngine, MessagesReachDevicesOfTheSameWorkerAndOfAnother) {
  run(2, 2, [](Worker& worker) {
    Communicator& communicator = worker.communicator(all_devices(worker));
    const std::vector<float> values(1000, 7);
    const int first = 2 * worker.index();
    const auto empty = [&](Device& device) { return put(worker, device, std::vector<float>(values.size(), 0)); };
    Device &one = *worker.devices()[0], &other = *worker.devices()[1];
    const Tensor taken = worker.index() == 0 ? put(worker, one, values) : empty(one);
    const Tensor last = empty(other);
    if (worker.index() == 1) communicator.receive(taken, first - 1, one.compute_stream());
    communicator.send(taken, first + 1, one.compute_stream());
    communicator.receive(last, first, other.compute_stream());
    if (worker.index() == 0) communicator.send(last, first + 2, other.compute_stream());
    EXPECT_EQ(get(worker, last), values);
    for (Device* device : worker.devices()) device->synchronize();
  });
}

// The bits of 6, which is the sum of 1, 2 and 3.
TEST_P(EveryEngine, ReducesHalvesWhereItHasThem) {
  run(3, 1, [](Worker& worker) {
    for (const auto& [dtype, bits] : {std::pair(DType::f16, 0x4600), std::pair(DType::bf16, 0x40c0)}) {
      const std::vector<DType>& dtypes = worker.capabilities().dtypes;
      if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) continue;
      for (const std::int64_t count : {5, 5000}) {
        Device& device = *worker.devices()[0];
        const std::vector<Tensor> sums{device.allocate(dtype, {count})};
        device.compute_stream().launch(op::fill(sums[0], worker.index() + 1));
        worker.communicator(all_devices(worker)).all_reduce(sums, Reduction::sum, streams_of(worker, kComputeStream));
        const Tensor host = worker.cpu().allocate(dtype, {count});
        device.compute_stream().copy(host, sums[0]);
        device.compute_stream().synchronize();
        std::vector<std::uint16_t> actual(static_cast<std::size_t>(count));
        std::memcpy(actual.data(), host.data(), host.size_bytes());
        EXPECT_THAT(actual, testing::Each(bits)) << name_of(dtype) << ", " << count << " elements";
      }
    }
  });
}

TEST_P(EveryEngine, SendsMeetReceivesInOrder) {
  run(2, 1, [](Worker& worker) {
    Communicator& communicator = worker.communicator(all_devices(worker));
    Device& device = *worker.devices()[0];
    const Tensor tensor = put(worker, device, {static_cast<float>(worker.index() + 1)});
    for (int i = 0; i < 3; ++i) {
      if (worker.index() == 0) {
        communicator.send(tensor, 1, device.compute_stream());
        device.compute_stream().launch(op::scale_add(tensor, tensor, 1, 1));
      } else {
        communicator.receive(tensor, 0, device.compute_stream());
        EXPECT_THAT(get(worker, tensor), ElementsAre(static_cast<float>(1 << i)));
      }
    }
    device.synchronize();
  });
}

}  // namespace
}  // namespace tandem
