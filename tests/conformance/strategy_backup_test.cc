// Training loops that are interrupted at each of their moments, and go on from their last backup, in every world: their
// losses and variables are those of a loop that nothing interrupts, bit for bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/training/backup_and_restore.h"
#include "strategies/training/metrics.h"
#include "strategies/training/optimizers.h"
#include "strategies/training/random_generator.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kEpochs = 2, kStepsOfEpoch = 4, kExamplesOfStep = 4;
constexpr int kMomentsOfEpoch = 2 * kStepsOfEpoch + 1;
constexpr int kNever = 1 << 20;

using MakeStrategy = std::function<std::unique_ptr<Strategy>(Worker&)>;

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// What the workers of this process have seen.
struct Course {
  std::map<std::int64_t, double> losses{};  // by the number of the step
  std::vector<double> weights{};            // in the end
  bool has_resumed = false;
  std::int64_t first_step = 0;
  int moments = 0;
};

class Backups : public InEveryWorld {
 protected:
  void SetUp() override {
    InEveryWorld::SetUp();
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = fmt::format("tandem-backups-{}-{}", test.name(), ::getppid());
    std::ranges::replace(name, '/', '-');
    // Memory waits for no disk, a thousand times.
    const fs::path memory = "/dev/shm";
    folder_ = (access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) / name;
    remove();
  }
  void TearDown() override { remove(); }
  void remove() const {
    std::error_code removed_by_another_rank;
    fs::remove_all(folder_, removed_by_another_rank);
  }

  EngineOptions options(int workers, int servers, int devices) const {
    EngineOptions options = world_options(GetParam(), workers + servers, devices);
    for (int i = 0; i < servers; ++i) {
      WorkerSpec& server = options.workers[static_cast<std::size_t>(workers + i)];
      server.job = "ps";
      server.task = i;
      server.device_count = 0;
    }
    return options;
  }

  // Trains until the moment, of which there are two in each step and one at the end of each epoch.
  Course train(const EngineOptions& options, const MakeStrategy& make, const BackupAndRestoreOptions& backups,
               int last_moment = kNever) const {
    Course course;
    std::mutex mutex;
    const auto program = [&](Worker& worker) {
      if (worker.job() == "ps") return;
      Course mine;
      const auto note = [&] {
        const std::lock_guard lock(mutex);
        if (mine.losses.size() >= course.losses.size()) course = mine;
      };
      try {
        train_worker(worker, make, backups, last_moment, mine);
      } catch (...) {
        note();
        throw;
      }
      note();
    };
    try {
      open_engine(GetParam().engine, options)->run(program);
      EXPECT_EQ(last_moment, kNever);
    } catch (const std::exception& error) {
      EXPECT_NE(last_moment, kNever) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("interrupted"));
    }
    return course;
  }

  void train_worker(Worker& worker, const MakeStrategy& make, const BackupAndRestoreOptions& backups, int last_moment,
                    Course& mine) const {
    const std::unique_ptr<Strategy> strategy = make(worker);
    const Scope scope = strategy->scope();
    const int replicas = strategy->num_replicas_in_sync();
    const auto weight = create_variable(
        {.name = "weight", .shape = {3}, .initial_value = [](std::int64_t i) { return 0.1 * static_cast<double>(i); }});
    optimizers::Adam adam({.learning_rate = [](std::int64_t steps) { return steps < 5 ? 0.25 : 0.125; }});
    auto random = RandomGenerator::from_seed(11);
    adam.build({weight});
    Checkpoint checkpoint(worker);
    checkpoint.add("weight", weight);
    adam.add_to(checkpoint);
    random.add_to(checkpoint);
    const DistributedDataset dataset = strategy->experimental_distribute_dataset(
        Dataset::range(kStepsOfEpoch * kExamplesOfStep)
            .map([](const Element& index) { return HostTensor::scalar(static_cast<float>(index.tensor().number())); })
            .shuffle(5)
            .batch(kExamplesOfStep));
    const auto moment = [&] {
      const bool is_last = mine.moments++ == last_moment;
      if (is_last && worker.index() == interrupting_worker(worker.cluster(), last_moment)) throw Interrupted();
    };

    BackupAndRestore backup(checkpoint, folder_.string(), backups);
    mine.has_resumed = backup.on_train_begin();
    mine.first_step = backup.total_steps();
    while (backup.epoch() < kEpochs) {
      DistributedIterator batches = backup.iterator(dataset);
      while (const std::optional<Value> batch = batches.next()) {
        const std::int64_t number = backup.total_steps();
        backup.run([&] {
          moment();
          const Value losses = strategy->run(
              [&](const Value::Parts& arguments) -> Value {
                const Value noise = random.uniform({3}, 0.5, 1.5);
                const double scale = host_values(worker, arguments[0].tensor()).front() / 7 + 0.3;
                const Value error = Value(weight->value()) * noise - noise * scale;
                adam.apply_gradients({{error * (2.0 / replicas), weight}});
                return error * error;
              },
              {*batch});
          mine.losses[number] = host_values(worker, strategy->reduce(ReduceOp::sum, losses).tensor()).front();
          moment();
        });
      }
      moment();
      backup.on_epoch_end();
    }
    backup.on_train_end();
    mine.weights = host_values(worker, weight->read());
  }

  // Interrupts the loop at each moment, with backups after each step, some steps and each epoch in turn.
  void interrupt_everywhere(const EngineOptions& options, const MakeStrategy& make) const {
    const Course whole = train(options, make, {});
    const bool trains = whole.moments > 0;  // else this process has no worker that does, and runs beside the others
    ASSERT_EQ(whole.moments, trains ? kEpochs * kMomentsOfEpoch : 0);
    ASSERT_EQ(whole.losses.size(), static_cast<std::size_t>(trains ? kEpochs * kStepsOfEpoch : 0));
    for (int last = 0; last < kEpochs * kMomentsOfEpoch; ++last) {
      const std::int64_t save_freq = std::array{1, 3, 0}.at(static_cast<std::size_t>(last) % 3);
      SCOPED_TRACE(fmt::format("interrupted at moment {}, save_freq {}", last, save_freq));
      const Course first = train(options, make, {.save_freq = save_freq}, last);
      const Course second = train(options, make, {.save_freq = save_freq});
      if (trains) expect_start(second, last, save_freq, interrupting_worker(options.workers, last) == 0);
      EXPECT_EQ(second.weights, whole.weights);
      for (const auto& [step, loss] : whole.losses) {
        const auto before = first.losses.find(step), after = second.losses.find(step);
        EXPECT_EQ(before == first.losses.end() ? loss : before->second, loss) << "step " << step;
        EXPECT_EQ(after == second.losses.end(), step < second.first_step) << "step " << step;
        EXPECT_EQ(after == second.losses.end() ? loss : after->second, loss) << "step " << step;
      }
      EXPECT_FALSE(fs::exists(folder_)) << "the backup is deleted in the end";
      remove();
      ASSERT_FALSE(HasFailure());
    }
  }

  // The interrupted loop has saved all that it was to save. Another worker than the one that saves may interrupt it a
  // backup earlier or later.
  static void expect_start(const Course& course, int last, std::int64_t save_freq, bool is_exact) {
    const std::int64_t begun = last / kMomentsOfEpoch, done = begun * kStepsOfEpoch + last % kMomentsOfEpoch / 2;
    const std::int64_t saved = save_freq == 0 ? begun * kStepsOfEpoch : done / save_freq * save_freq;
    const std::int64_t slack = is_exact ? 0 : save_freq == 0 ? kStepsOfEpoch : save_freq;
    EXPECT_GE(course.first_step, saved - slack);
    EXPECT_LE(course.first_step, saved + slack);
    EXPECT_EQ(course.has_resumed, course.first_step > 0);
  }

  // Workers take turns.
  static int interrupting_worker(std::span<const WorkerSpec> cluster, int moment) {
    return moment %
           static_cast<int>(std::ranges::count_if(cluster, [](const WorkerSpec& one) { return one.job != "ps"; }));
  }

  fs::path folder_;
};
INSTANTIATE_TEST_SUITE_P(Worlds, Backups, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(Backups, OfOneDevice) {
  interrupt_everywhere(options(1, 0, 1), [](Worker& worker) {
    return std::make_unique<OneDeviceStrategy>(worker, *worker.devices()[0]);
  });
}

TEST_P(Backups, OfMirrored) {
  interrupt_everywhere(options(1, 0, 2),
                       [](Worker& worker) { return std::make_unique<MirroredStrategy>(worker, devices_of(worker)); });
}

TEST_P(Backups, OfCentralStorage) {
  interrupt_everywhere(options(1, 0, 2), [](Worker& worker) {
    return std::make_unique<CentralStorageStrategy>(worker, devices_of(worker));
  });
}

TEST_P(Backups, OfSeveralWorkers) {
  interrupt_everywhere(options(2, 0, 2),
                       [](Worker& worker) { return std::make_unique<MultiWorkerMirroredStrategy>(worker); });
}

TEST_P(Backups, SayWhatIsWrong) {
  if (GetParam().engine != "cpu") GTEST_SKIP() << "the same in every world";
  open_world(GetParam(), 1, 1)->run([&](Worker& worker) {
    const auto refusal = [&](const BackupAndRestoreOptions& options) {
      Checkpoint checkpoint(worker);
      return message_of<ValueError>([&] { BackupAndRestore(checkpoint, folder_.string(), options); });
    };
    EXPECT_EQ(refusal({.save_freq = std::nullopt}),
              "either save_freq or save_before_preemption must be set, or nothing is backed up");
    EXPECT_EQ(refusal({.save_freq = -2}), "save_freq is -2 steps; it must be positive, or kEachEpoch");
    Checkpoint checkpoint(worker);
    BackupAndRestore backup(checkpoint, folder_.string(), {.save_freq = 2, .delete_checkpoint = false});
    EXPECT_THAT(message_of<ValueError>([&] { BackupAndRestore(checkpoint, "other"); }), HasSubstr("backup/position"));
    EXPECT_FALSE(backup.on_train_begin());
    OneDeviceStrategy strategy(worker, *worker.devices()[0]);
    const DistributedDataset endless = strategy.experimental_distribute_dataset(Dataset::range(8).repeat().batch(4));
    backup.iterator(endless);
    EXPECT_THAT(message_of<ValueError>([&] { backup.iterator(endless); }), HasSubstr("once for all epochs"));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(backup.run([] {}));
    backup.on_train_end();
    EXPECT_EQ(backup.manager().latest_checkpoint(), (folder_ / "ckpt-2").string());
    EXPECT_THAT(backup.manager().checkpoints(), testing::SizeIs(1)) << "one backup is kept";

    Checkpoint again(worker);
    BackupAndRestore resumed(again, folder_.string());
    EXPECT_TRUE(resumed.on_train_begin());
    EXPECT_EQ(resumed.total_steps(), 4);
    DistributedIterator batches = resumed.iterator(endless);
    EXPECT_EQ(host_values(worker, batches.get_next().tensor()).front(), 0) << "after two times around";
    resumed.on_train_end();
    EXPECT_FALSE(fs::exists(folder_));
  });
}

TEST_P(Backups, ComeBeforeWorkersAreTerminated) {
  const auto train = [this](int noticed_at) {
    Course course;
    std::mutex mutex;
    int exit_code = 0;
    open_world(GetParam(), 2, 1)->run([&](Worker& worker) {
      MultiWorkerMirroredStrategy strategy(worker);
      const Scope scope = strategy.scope();
      const auto weight = create_variable({.name = "weight"});
      Checkpoint checkpoint(worker);
      checkpoint.add("weight", weight);
      std::int64_t steps = 0;
      BackupAndRestoreOptions options{.save_freq = std::nullopt, .save_before_preemption = true};
      options.termination = {.termination_watcher = [&] { return worker.index() == 1 && steps >= noticed_at; },
                             .exit_code = 42};
      BackupAndRestore backup(checkpoint, folder_.string(), options);
      const bool has_resumed = backup.on_train_begin();
      const std::int64_t first = steps = backup.total_steps();
      bool goes_on = true;
      while (goes_on && steps < kEpochs * kStepsOfEpoch) {
        goes_on = backup.run([&] {
          strategy.run([&](const Value::Parts&) -> Value {
            weight->assign(Value(weight->value()) * 1.1 + 1.0 / 3);
            return {};
          });
          strategy.reduce(ReduceOp::sum, Value(1.0));  // together
        });
        steps = backup.total_steps();
      }
      if (goes_on) backup.on_train_end();
      const double last = host_number(worker, weight->read());
      const std::lock_guard lock(mutex);
      exit_code = goes_on ? 0 : backup.exit_code();
      course = {.weights = {last, static_cast<double>(steps)}, .has_resumed = has_resumed, .first_step = first};
    });
    return std::pair(course, exit_code);
  };
  const auto [whole, no_code] = train(kNever);
  const auto [first, code] = train(3);
  const auto [second, last_code] = train(kNever);
  if (whole.weights.empty()) return;  // this process has no worker
  EXPECT_EQ(no_code, 0);
  EXPECT_EQ(code, 42);
  EXPECT_TRUE(second.has_resumed);
  EXPECT_EQ(static_cast<double>(second.first_step), first.weights[1]);
  EXPECT_GE(second.first_step, 3);
  EXPECT_EQ(last_code, 0);
  EXPECT_EQ(second.weights, whole.weights);
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace tandem
