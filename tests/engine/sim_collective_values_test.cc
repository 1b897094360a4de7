// Effect of simulated collectives on the values of every rank.
#include <functional>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

class ValuesOver : public testing::TestWithParam<int> {
 protected:
  struct Buffers {
    std::vector<Tensor> small, large;
    std::vector<Stream*> streams;
  };
  // Every rank's element i starts as rank + 10 i; large ones have n times the elements.
  void run(const std::function<void(Communicator&, Buffers&)>& call, const std::function<void(int, Buffers&)>& check) {
    const int n = GetParam();
    EngineOptions options = gpu_workers(make_star({.workers = n}), n);
    options.values = ValueMode::real;
    simulate(options, [&](Worker& worker) {
      Communicator& communicator = worker.communicator(gpus_of(n));
      Buffers buffers;
      Device& gpu = *worker.devices()[0];
      buffers.small = {gpu.allocate(DType::f32, {kCount})};
      buffers.large = {gpu.allocate(DType::f32, {kCount * n})};
      buffers.streams = {&gpu.compute_stream()};
      fill(buffers.small[0], worker.index());
      fill(buffers.large[0], worker.index());
      call(communicator, buffers);
      gpu.synchronize();
      check(worker.index(), buffers);
    });
  }
  static void fill(const Tensor& tensor, int rank) {
    auto values = tensor.values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(rank + 10 * static_cast<int>(i));
  }
  static float sum(std::size_t i) {
    const int n = GetParam();
    const int ranks = n * (n - 1) / 2;
    return static_cast<float>(ranks + 10 * n * static_cast<int>(i));
  }
  static constexpr int kCount = 3;
};

TEST_P(ValuesOver, AllReduceSumsOnEveryRank) {
  run([](Communicator& c, Buffers& b) { c.all_reduce(b.small, Reduction::sum, b.streams); },
      [](int, Buffers& b) {
        for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(b.small[0].values<float>()[i], sum(i));
      });
}

TEST_P(ValuesOver, AllReduceTakesTheMaximum) {
  run([](Communicator& c, Buffers& b) { c.all_reduce(b.small, Reduction::maximum, b.streams); },
      [](int, Buffers& b) { EXPECT_EQ(b.small[0].values<float>()[1], static_cast<float>(GetParam() - 1 + 10)); });
}

TEST_P(ValuesOver, ReduceSumsOnTheRootAlone) {
  const int root = GetParam() - 1;
  run([&](Communicator& c, Buffers& b) { c.reduce(b.small, Reduction::sum, root, b.streams); },
      [&](int rank, Buffers& b) {
        EXPECT_EQ(b.small[0].values<float>()[2], rank == root ? sum(2) : static_cast<float>(rank + 20));
      });
}

TEST_P(ValuesOver, BroadcastCopiesTheRoot) {
  const int root = GetParam() / 2;
  run([&](Communicator& c, Buffers& b) { c.broadcast(b.small, root, b.streams); },
      [&](int, Buffers& b) { EXPECT_EQ(b.small[0].values<float>()[2], static_cast<float>(root + 20)); });
}

TEST_P(ValuesOver, AllGatherJoinsInRankOrder) {
  run([](Communicator& c, Buffers& b) { c.all_gather(b.large, b.small, b.streams); },
      [](int, Buffers& b) {
        for (int rank = 0; rank < GetParam(); ++rank) {
          EXPECT_EQ(b.large[0].values<float>()[static_cast<std::size_t>(rank * kCount + 1)],
                    static_cast<float>(rank + 10));
        }
      });
}

TEST_P(ValuesOver, ReduceScatterLeavesEachRankItsPart) {
  run([](Communicator& c, Buffers& b) { c.reduce_scatter(b.small, b.large, Reduction::sum, b.streams); },
      [](int rank, Buffers& b) {
        for (int i = 0; i < kCount; ++i) {
          EXPECT_EQ(b.small[0].values<float>()[static_cast<std::size_t>(i)],
                    sum(static_cast<std::size_t>(rank * kCount + i)));
        }
      });
}

TEST_P(ValuesOver, AllToAllTransposesTheParts) {
  const int n = GetParam();
  run(
      [&](Communicator& c, Buffers& b) {
        const std::vector<Tensor> inputs = {b.large[0]};
        b.large = {inputs[0].device().allocate(DType::f32, {kCount * n})};
        c.all_to_all(b.large, inputs, b.streams);
      },
      [&](int rank, Buffers& b) {
        for (int from = 0; from < n; ++from) {
          for (int i = 0; i < kCount; ++i) {
            EXPECT_EQ(b.large[0].values<float>()[static_cast<std::size_t>(from * kCount + i)],
                      static_cast<float>(from + 10 * (rank * kCount + i)));
          }
        }
      });
}

// In a group of one device both tensors may be the same one, since they have the same size.
TEST(SimCollective, OneDeviceScattersAndGathersInPlace) {
  EngineOptions options = gpu_workers(make_star(), 1);
  options.values = ValueMode::real;
  simulate(options, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {2})};
    const std::vector<Stream*> streams = {&gpu.compute_stream()};
    gpu.compute_stream().launch(op::fill(buffers[0], 7));
    Communicator& communicator = worker.communicator(gpus_of(1));
    communicator.reduce_scatter(buffers, buffers, Reduction::sum, streams);
    communicator.all_gather(buffers, buffers, streams);
    gpu.synchronize();
    EXPECT_EQ(buffers[0].values<float>()[1], 7);
  });
}

INSTANTIATE_TEST_SUITE_P(SimCollective, ValuesOver, testing::Values(1, 2, 3, 8),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace tandem
