// Every collective of the cpu engine, over element types, groups and sizes, spread over one and several workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/cpu/cpu_engine.h"
#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

struct Layout {
  int workers = 1;
  int devices = 1;
  int ranks() const { return workers * devices; }
};

// Element i of rank r: whole numbers, so that every sum is exact, distinct enough to notice a wrong place.
template <typename T>
T element(int rank, std::int64_t i) {
  return static_cast<T>((rank + 1) * 3 + i % 13);
}

template <typename T>
T sum_over_ranks(int ranks, std::int64_t i) {
  T sum{};
  for (int rank = 0; rank < ranks; ++rank) sum += element<T>(rank, i);
  return sum;
}

// The tensors of one worker's local devices and what to call with them.
template <typename T>
class Local {
 public:
  Local(Worker& worker, Layout layout)
      : worker_(worker), communicator_(worker.communicator(all_devices(layout.workers, layout.devices))) {}

  Communicator& communicator() { return communicator_; }
  int rank(std::size_t i) const { return communicator_.local_ranks()[i]; }
  std::vector<Stream*> streams() const { return streams_of(worker_.devices(), kCommunicationStream); }

  std::vector<Tensor> tensors(std::int64_t count, bool filled) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < worker_.devices().size(); ++i) {
      tensors.push_back(worker_.devices()[i]->allocate(kDTypeOf<T>, {count}));
      std::int64_t at = 0;
      for (T& value : tensors.back().template values<T>()) value = filled ? element<T>(rank(i), at++) : T{99};
    }
    return tensors;
  }

  // Waits for the devices, then compares each rank's tensor with expected(rank, element).
  template <typename Expected>
  void expect(const std::vector<Tensor>& tensors, Expected expected, const char* what) {
    for (Device* device : worker_.devices()) device->synchronize();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::span<T> values = tensors[i].template values<T>();
      for (std::size_t at = 0; at < values.size(); ++at) {
        ASSERT_EQ(values[at], expected(rank(i), static_cast<std::int64_t>(at)))
            << what << ", rank " << rank(i) << ", element " << at << " of " << values.size();
      }
    }
  }

 private:
  Worker& worker_;
  Communicator& communicator_;
};

template <typename T>
void try_every_collective(Worker& worker, Layout layout, std::int64_t count) {
  Local<T> local(worker, layout);
  Communicator& communicator = local.communicator();
  const int n = layout.ranks();
  const int root = n - 1;

  std::vector<Tensor> buffers = local.tensors(count, true);
  communicator.all_reduce(buffers, Reduction::sum, local.streams());
  local.expect(
      buffers, [&](int, std::int64_t i) { return sum_over_ranks<T>(n, i); }, "all_reduce");

  buffers = local.tensors(count, true);
  communicator.all_reduce(buffers, Reduction::maximum, local.streams());
  local.expect(
      buffers, [&](int, std::int64_t i) { return element<T>(n - 1, i); }, "all_reduce (maximum)");

  buffers = local.tensors(count, true);
  communicator.all_reduce(buffers, Reduction::minimum, local.streams());
  local.expect(
      buffers, [&](int, std::int64_t i) { return element<T>(0, i); }, "all_reduce (minimum)");

  buffers = local.tensors(count, true);
  communicator.reduce(buffers, Reduction::sum, root, local.streams());
  local.expect(
      buffers, [&](int rank, std::int64_t i) { return rank == root ? sum_over_ranks<T>(n, i) : element<T>(rank, i); },
      "reduce");

  buffers = local.tensors(count, true);
  communicator.broadcast(buffers, root, local.streams());
  local.expect(
      buffers, [&](int, std::int64_t i) { return element<T>(root, i); }, "broadcast");

  std::vector<Tensor> inputs = local.tensors(count, true);
  std::vector<Tensor> outputs = local.tensors(count * n, false);
  communicator.all_gather(outputs, inputs, local.streams());
  local.expect(
      outputs, [&](int, std::int64_t i) { return element<T>(static_cast<int>(i / count), i % count); }, "all_gather");

  inputs = local.tensors(count * n, true);
  outputs = local.tensors(count, false);
  communicator.reduce_scatter(outputs, inputs, Reduction::sum, local.streams());
  local.expect(
      outputs, [&](int rank, std::int64_t i) { return sum_over_ranks<T>(n, rank * count + i); }, "reduce_scatter");

  outputs = local.tensors(count * n, false);
  communicator.all_to_all(outputs, inputs, local.streams());
  const auto column = [&](int rank, std::int64_t i) {
    return element<T>(static_cast<int>(i / count), rank * count + i % count);
  };
  local.expect(outputs, column, "all_to_all");
}

class Collectives : public testing::TestWithParam<Layout> {};

TEST_P(Collectives, GiveExactResultsForEveryTypeAndSize) {
  const Layout layout = GetParam();
  run_on_cpu(layout.workers, layout.devices, [&](Worker& worker) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000, 40'009}) {
      try_every_collective<float>(worker, layout, count);
      try_every_collective<double>(worker, layout, count);
      try_every_collective<std::int32_t>(worker, layout, count);
    }
  });
}

TEST_P(Collectives, SendAroundTheRing) {
  const Layout layout = GetParam();
  if (layout.ranks() < 2) return;  // a ring needs a neighbour
  run_on_cpu(layout.workers, layout.devices, [&](Worker& worker) {
    Local<float> local(worker, layout);
    const int n = layout.ranks();
    for (int round = 0; round < 20; ++round) {
      const std::vector<Tensor> from = local.tensors(100 + round, true), to = local.tensors(100 + round, false);
      for (std::size_t i = 0; i < from.size(); ++i) {
        local.communicator().send(from[i], (local.rank(i) + 1) % n, worker.devices()[i]->stream(1));
        local.communicator().receive(to[i], (local.rank(i) + n - 1) % n, worker.devices()[i]->stream(2));
      }
      local.expect(
          to, [&](int rank, std::int64_t i) { return element<float>((rank + n - 1) % n, i); }, "receive");
    }
  });
}

TEST_P(Collectives, ManyInARowKeepTheirOrder) {
  const Layout layout = GetParam();
  run_on_cpu(layout.workers, layout.devices, [&](Worker& worker) {
    Local<double> local(worker, layout);
    const std::vector<Tensor> buffers = local.tensors(33, false);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      for (double& value : buffers[i].values<double>()) value = 1;
    }
    constexpr int kCalls = 6;
    for (int i = 0; i < kCalls; ++i) local.communicator().all_reduce(buffers, Reduction::sum, local.streams());
    const double expected = std::pow(layout.ranks(), kCalls);
    local.expect(
        buffers, [&](int, std::int64_t) { return expected; }, "a power");
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives,
                         testing::Values(Layout{1, 1}, Layout{1, 2}, Layout{1, 3}, Layout{1, 8}, Layout{2, 1},
                                         Layout{3, 1}, Layout{2, 4}, Layout{8, 1}),
                         [](const auto& layout) {
                           return std::to_string(layout.param.workers) + "x" + std::to_string(layout.param.devices);
                         });

// Sums of fractions depend on the order of additions; the order must not depend on the threads.
TEST(CollectiveOrder, IsTheSameEveryTime) {
  std::vector<float> first;
  for (int run = 0; run < 5; ++run) {
    run_on_cpu(1, 3, [&](Worker& worker) {
      Local<float> local(worker, {1, 3});
      const std::vector<Tensor> buffers = local.tensors(200'003, false);
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        float value = 0.1F + static_cast<float>(i) / 3;
        for (float& element : buffers[i].values<float>()) element = value = value * 1.37F > 1e6F ? 0.7F : value * 1.37F;
      }
      local.communicator().all_reduce(buffers, Reduction::sum, local.streams());
      for (Device* device : worker.devices()) device->synchronize();
      for (const Tensor& buffer : buffers) {
        const std::vector<float> values(buffer.values<float>().begin(), buffer.values<float>().end());
        if (first.empty()) first = values;
        EXPECT_TRUE(values == first) << "run " << run;
      }
    });
  }
}

TEST(CollectiveRecords, FollowNcclTestsConvention) {
  const Layout layout{2, 2};
  const Timeline timeline = run_on_cpu(layout.workers, layout.devices, [&](Worker& worker) {
    Local<float> local(worker, layout);
    worker.begin_step(1);
    const std::vector<Tensor> small = local.tensors(10, true), large = local.tensors(40, true);
    local.communicator().all_reduce(small, Reduction::sum, local.streams());
    local.communicator().all_gather(large, small, local.streams());
    local.communicator().reduce_scatter(small, large, Reduction::sum, local.streams());
    local.communicator().all_to_all(local.tensors(40, false), large, local.streams());
    worker.end_step();
  });
  std::map<std::string, int> records;
  std::map<std::int64_t, std::string> names;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::collective) continue;
    ++records[record.name];
    EXPECT_EQ(record.ranks, 4);
    EXPECT_EQ(record.step, 1);
    EXPECT_EQ(record.category, Category::communication);
    EXPECT_EQ(record.bytes, record.name == "all_reduce" ? 40 : 160) << record.name;
    EXPECT_EQ(names.emplace(record.sequence, record.name).first->second, record.name);
  }
  EXPECT_THAT(records,
              testing::UnorderedElementsAre(testing::Pair("all_reduce", 4), testing::Pair("all_gather", 4),
                                            testing::Pair("reduce_scatter", 4), testing::Pair("all_to_all", 4)));
  EXPECT_EQ(names.size(), 4U);
}

TEST(CollectiveRecords, NameBothSidesOfATransfer) {
  const Timeline timeline = run_on_cpu(1, 2, [&](Worker& worker) {
    Local<float> local(worker, {1, 2});
    const std::vector<Tensor> tensors = local.tensors(10, true);
    local.communicator().send(tensors[1], 0, worker.devices()[1]->stream(1));
    local.communicator().receive(tensors[0], 1, worker.devices()[0]->stream(1));
  });
  ASSERT_EQ(timeline.records.size(), 2U);
  for (const Record& record : timeline.records) {
    EXPECT_EQ(record.name, record.device == 1 ? "send" : "receive");
    EXPECT_EQ(record.ranks, 2);
    EXPECT_EQ(record.bytes, 40);
  }
  EXPECT_EQ(timeline.records[0].sequence, timeline.records[1].sequence);
}

}  // namespace
}  // namespace tandem
