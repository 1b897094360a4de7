// Input in every world: loops over distributed datasets, TensorFlow 1's iterators, and elements made ahead of their
// use.
#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/distributed_dataset_v1.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Input : public Strategies {
 protected:
  // Time on this world's clock: on a device where the world is simulated, else of the calling thread.
  void take_time(Device& device) const {
    constexpr double kSeconds = 0.02;
    if (!GetParam().collectives) return std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
    Stream& stream = device.stream(9);
    stream.launch(op::host_function("work", {.flops = 1e12 * kSeconds}, [] {}));
    stream.synchronize();
  }
  // How long it takes to use all steps of the iterator, each of which the host is busy with.
  template <typename Next>
  Nanoseconds time_of(Worker& worker, const Next& next) const {
    const Nanoseconds start = worker.now();
    while (next()) take_time(*worker.devices().back());
    return worker.now() - start;
  }
  // Whether making ahead saves time. Other programs may keep the processors busy: one of a few tries must show it.
  using Time = std::function<Nanoseconds()>;
  static void expect_faster(const Time& ahead, const Time& one_after_another) {
    bool is_faster = false;
    for (int attempt = 0; attempt < 4 && !is_faster; ++attempt) is_faster = 10 * ahead() < 8 * one_after_another();
    EXPECT_TRUE(is_faster);
  }
  Dataset slow_range(Worker& worker, std::int64_t count) const {
    return Dataset::range(count).map([this, &worker](const Element& element) {
      take_time(worker.cpu());
      return element;
    });
  }
};

std::vector<std::int64_t> numbers_of(DatasetIterator elements) {
  std::vector<std::int64_t> numbers;
  while (const auto element = elements.next()) {
    numbers.push_back(element->tensor().values<std::int64_t>()[0]);
  }
  return numbers;
}

TEST_P(Input, IsLoopedOver) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const DistributedDataset dataset = strategy.experimental_distribute_dataset(Dataset::range(6).batch(4));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<double> seen;
      for (const Value& step : dataset) {
        for (const Value& part : strategy.experimental_local_results(step)) {
          for (const double number : host_values(worker, part.tensor())) seen.push_back(number);
        }
      }
      EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5));
    }
    for (const Value& step : strategy.experimental_distribute_dataset(Dataset::range(0).batch(2))) {
      ADD_FAILURE() << "a step of an empty dataset: " << step;
    }
  });
}

TEST_P(Input, OfTensorFlow1CanBeInitialisedAgain) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    DistributedIteratorV1 iterator = strategy.make_dataset_iterator(Dataset::range(4).batch(4));
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Value step = iterator.get_next();
      EXPECT_THAT(host_values(worker, step.parts()[1].tensor()), ElementsAre(2, 3)) << "the batch is a global one";
      EXPECT_THROW(iterator.get_next(), OutOfRangeError);
      iterator.initialize();
    }
  });
}

TEST_P(Input, IsMadeWhileTheConsumerIsBusy) {
  run(2, [this](Worker& worker) {
    const auto time_with = [&](std::int64_t buffer) {
      DatasetIterator elements = slow_range(worker, 6).prefetch(buffer).iterator();
      return time_of(worker, [&] { return elements.next().has_value(); });
    };
    expect_faster([&] { return time_with(2); }, [&] { return time_with(0); });
  });
}

TEST_P(Input, OfReplicasIsMadeWhileTheConsumerIsBusy) {
  const auto program = [this](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Time ahead = [&] {
      auto steps = strategy.experimental_distribute_dataset(slow_range(worker, 6).batch(1)).iterator();
      return time_of(worker, [&] { return steps.next().has_value(); });
    };
    const Time one_after_another = [&] {
      auto elements = slow_range(worker, 6).batch(1).iterator();
      return time_of(worker, [&] { return elements.next().has_value(); });
    };
    expect_faster(ahead, one_after_another);
  };
  run(2, program);
  run(1, program);  // one replica like several: else scaling to two would look too good
}

// A file is read once to see the form of all; then each worker reads those of its shard.
TEST_P(Input, FilesOfTwoWorkersAreOpenedOnce) {
  open_world(GetParam(), 2, 1)->run([](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    std::vector<std::string> opened;
    const Dataset files = Dataset::read_files({"a", "b", "c", "d"}, [&opened](const std::string& name) {
      opened.push_back(name);
      return std::vector<Element>(8, Element(HostTensor::scalar<std::int64_t>(name[0])));
    });
    auto steps = strategy.experimental_distribute_dataset(files.batch(4)).iterator();
    const Value step = steps.get_next();
    EXPECT_THAT(host_values(worker, step.tensor()), testing::Each(worker.index() == 0 ? 'a' : 'b'));
    if (worker.index() == 0) {
      EXPECT_THAT(opened, ElementsAre("a"));
    } else {
      EXPECT_THAT(opened, ElementsAre("a", "b"));
    }
    while (steps.next()) {
    }
  });
}

TEST_P(Input, MadeAheadKeepsOrderEndAndErrors) {
  run(1, [](Worker& worker) {
    EXPECT_THAT(numbers_of(Dataset::range(5).prefetch(2).iterator()), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(numbers_of(Dataset::range(5).prefetch(Dataset::kAutotune).prefetch(1).iterator()),
                ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(numbers_of(Dataset::range(2).prefetch(3).repeat(2).iterator()), ElementsAre(0, 1, 0, 1));
    EXPECT_THROW(Dataset::range(1).prefetch(-2), ValueError);
    DatasetIterator failing = Dataset::range(5)
                                  .map([](const Element& element) -> Element {
                                    if (element.tensor().values<std::int64_t>()[0] == 2) throw NotFoundError("no 2");
                                    return element;
                                  })
                                  .prefetch(4)
                                  .iterator();
    EXPECT_TRUE(failing.next());
    EXPECT_TRUE(failing.next());
    EXPECT_THAT(message_of<NotFoundError>([&] { failing.next(); }), HasSubstr("no 2"));
    DatasetIterator left_early = Dataset::range(1000).prefetch(2).iterator();
    EXPECT_TRUE(left_early.next());
    worker.cpu().synchronize();
  });
  EXPECT_THAT(numbers_of(Dataset::range(3).prefetch(2).iterator()), ElementsAre(0, 1, 2)) << "outside of a run";
}

// Returns the rows of the shard's first pieces, piece by piece.
std::vector<std::vector<std::int64_t>> first_pieces(const Dataset& shard, int count) {
  std::vector<std::vector<std::int64_t>> pieces;
  for (DatasetIterator elements = shard.iterator(); std::ssize(pieces) < count;) {
    const auto rows = elements.next()->tensor().values<std::int64_t>();
    pieces.emplace_back(rows.begin(), rows.end());
  }
  return pieces;
}

// A dataset without end makes only the rows that are asked for; one with an end makes whole batches.
TEST(Shards, OfAnEndlessDatasetHaveTheRowsOfAFiniteOne) {
  constexpr int kPieces = 10;
  const Dataset numbers = Dataset::range(3, 100);
  const Dataset shuffled = numbers.shuffle(7);
  const Dataset shuffled_once = numbers.shuffle(7, false);
  for (const Dataset& dataset : {numbers, shuffled, shuffled_once}) {
    for (const std::int64_t batch : {1, 7, 64, 250}) {
      for (const std::int64_t replicas : {1, 3, 4, 16}) {
        for (const std::int64_t shard : {0, 1, 2}) {
          const auto pieces_of = [&](const Dataset& repeated) {
            const Dataset pieces = repeated.batch(batch).legacy_rebatch(replicas);
            return first_pieces(pieces.shard(3, shard), kPieces);
          };
          EXPECT_EQ(pieces_of(dataset.repeat()), pieces_of(dataset.repeat(100)))
              << batch << ", " << replicas << ", " << shard;
        }
      }
    }
  }
}

TEST(Shards, OfAnEndlessDatasetMakeOnlyTheirOwnRows) {
  constexpr std::int64_t kReplicas = std::int64_t{1} << 38, kBatch = 4 * kReplicas;  // no memory holds such a batch
  const Dataset numbers = Dataset::range(3 * kBatch / 2).repeat().batch(kBatch).legacy_rebatch(kReplicas);
  const std::int64_t half = kBatch / 2;
  EXPECT_THAT(first_pieces(numbers.shard(kReplicas, 5), 3),
              ElementsAre(ElementsAre(20, 21, 22, 23), ElementsAre(kBatch + 20, kBatch + 21, kBatch + 22, kBatch + 23),
                          ElementsAre(half + 20, half + 21, half + 22, half + 23)));
}

TEST(HostTensors, RefuseRowsAndElementsThatTheyLack) {
  const HostTensor tensor = HostTensor::vector<float>({1, 2, 3});
  EXPECT_THROW(tensor.slice(2, 2), UsageError);
  EXPECT_THROW(tensor.row(3), UsageError);
  EXPECT_THROW(tensor.number(-1), UsageError);
  std::vector<float> room(2);
  EXPECT_THROW(tensor.copy_to(std::span<float>(room)), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Input, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
