// Work that a device repeats takes the times that it would take if it were issued each time.
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

constexpr int kOtherStream = 3, kForeignStream = 5;

struct RepeatOptions {
  bool merges_repeats = false;
  double launch_overhead_s = 0;
  bool are_alike = false;  // so that one of both workers runs
};

CollectiveSample measured_sum(double bytes, double time_s) {
  CollectiveSample sample;
  sample.operation = "all_reduce";
  sample.devices = sample.nodes = 2;
  sample.bytes = bytes;
  sample.time_s = time_s;
  return sample;
}

// Collectives have measured times, and so share no links.
EngineOptions machines(const RepeatOptions& asked) {
  StarOptions star;
  star.gpu.collective_slowdown = vendor(1.5);
  star.gpu.launch_overhead_s = vendor(asked.launch_overhead_s);
  const auto topology = make_star(star);
  topology->facts().collectives = {measured_sum(1e3, 1e-7), measured_sum(1e8, 1e-4)};
  EngineOptions options = gpu_workers(topology, 2);
  options.merges_repeats = asked.merges_repeats;
  if (asked.are_alike) options.alike = {0, 0};
  options.few_alike = 1;
  options.has_witnesses = false;
  return options;
}

// What a record says, without the number of its call.
using Said = std::tuple<int, int, std::string, Nanoseconds, Nanoseconds, int>;

std::vector<Said> said(const Timeline& timeline) {
  std::vector<Said> all;
  for (const Record& record : timeline.records) {
    all.emplace_back(record.device, record.stream, record.name.text(), record.start_ns, record.end_ns, record.step);
  }
  std::ranges::stable_sort(all, {}, [](const Said& one) { return std::pair(std::get<0>(one), std::get<1>(one)); });
  return all;
}

class Gpu {
 public:
  explicit Gpu(Worker& worker)
      : worker_(worker), device_(*worker.devices()[0]), memory_(device_.allocate(DType::f32, {1 << 22})) {}

  Device& device() const { return device_; }
  Stream& compute() const { return device_.compute_stream(); }
  Stream& other() const { return device_.stream(kOtherStream); }
  // An op that writes so many elements: 4 ps each.
  void work(Stream& stream, std::int64_t elements) const { stream.launch(op::fill(memory_.slice(0, elements), 0)); }
  Stream& foreign() const { return device_.stream(kForeignStream); }
  // A sum over both workers.
  void sum(Stream& stream, std::int64_t elements) const {
    const Tensor buffer = memory_.slice(0, elements);
    Stream* const only = &stream;
    worker_.communicator(gpus_of(2)).all_reduce({&buffer, 1}, Reduction::sum, {&only, 1});
  }

 private:
  Worker& worker_;
  Device& device_;
  Tensor memory_;
};

// Runs a program that issues work `times` times, and says how often it was called for that.
using Issue = std::function<void(Gpu& gpu)>;
Program repeating(const Issue& issue, int times, int& calls) {
  return [&, times](Worker& worker) {
    Gpu gpu(worker);
    RepeatedWork repeated;
    for (int i = 0; i < times; ++i) {
      gpu.device().repeat(repeated, [&] {
        if (worker.index() == 0) ++calls;
        issue(gpu);
      });
    }
    gpu.device().synchronize();
  };
}

void expect_equal_times(const Issue& issue, int expected_calls, RepeatOptions options) {
  constexpr int kTimes = 6;
  int calls = 0, calls_of_all = 0;
  const auto all = said(simulate(machines(options), repeating(issue, kTimes, calls_of_all)));
  options.merges_repeats = true;
  const auto merged = said(simulate(machines(options), repeating(issue, kTimes, calls)));
  EXPECT_EQ(merged, all);
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(calls, expected_calls);
  EXPECT_EQ(calls_of_all, kTimes);
}

TEST(SimRepeat, IssuesWorkOnceAndGivesItsTimesToTheOthers) {
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 1'000'000);
        gpu.other().wait(gpu.compute().record());
        gpu.work(gpu.compute(), 500'000);
        gpu.sum(gpu.other(), 2'000'000);
        gpu.compute().wait(gpu.other().record());
        gpu.work(gpu.compute(), 250'000);
      },
      1, {.are_alike = true});
}

TEST(SimRepeat, TakesTheTimesOfAHostThatIsSlower) {
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 100'000);
        gpu.work(gpu.compute(), 2'000'000);
        gpu.work(gpu.compute(), 100'000);
      },
      1, {.launch_overhead_s = 3e-6});
}

TEST(SimRepeat, IssuesEachTimeWhatCannotBeRepeated) {
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 1'000'000);
        gpu.sum(gpu.compute(), 100'000);
        gpu.work(gpu.compute(), 1'000'000);
      },
      6, {});
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 1'000'000);
        gpu.work(gpu.other(), 3'000'000);  // shares the device
        gpu.compute().wait(gpu.other().record());
      },
      6, {});
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 1'000'000);
        gpu.sum(gpu.other(), 3'000'000);  // may begin before
        gpu.compute().wait(gpu.other().record());
      },
      6, {.are_alike = true});
  expect_equal_times(
      [](Gpu& gpu) {
        gpu.work(gpu.compute(), 1'000'000);
        gpu.compute().synchronize();
      },
      6, {});
}

TEST(SimRepeat, WaitsForAnEventOfTheWork) {
  Nanoseconds waited = 0;
  const Issue issue = [&](Gpu& gpu) {
    gpu.work(gpu.compute(), 1'000'000);
    gpu.compute().record().synchronize();
  };
  int calls = 0;
  simulate(machines({.merges_repeats = true}), [&](Worker& worker) {
    repeating(issue, 3, calls)(worker);
    waited = worker.now();
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(waited, 3 * 4'000);
}

TEST(SimRepeat, GivesUpWorkThatFails) {
  const auto run = [] {
    simulate(machines({.merges_repeats = true}), [](Worker& worker) {
      Gpu gpu(worker);
      RepeatedWork repeated;
      gpu.device().repeat(repeated, [&] {
        gpu.work(gpu.compute(), 1'000'000);
        throw std::runtime_error("no more");
      });
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST(SimRepeat, ComputesValuesEachTime) {
  EngineOptions options = machines({.merges_repeats = true});
  options.values = ValueMode::real;
  int calls = 0;
  simulate(options, repeating([](Gpu& gpu) { gpu.work(gpu.compute(), 1000); }, 5, calls));
  EXPECT_EQ(calls, 5);
}

TEST(SimRepeat, EndsWhenTheWorkHasEnded) {
  int calls = 0;
  const auto times = [&](bool merges) {
    std::vector<Nanoseconds> ends;
    simulate(machines({.merges_repeats = merges}), [&](Worker& worker) {
      Gpu gpu(worker);
      RepeatedWork repeated;
      for (int i = 0; i < 4; ++i) {
        gpu.device().repeat(repeated, [&] {
          ++calls;
          for (int k = 0; k < 3; ++k) gpu.work(gpu.compute(), 1'000'000);
        });
        gpu.compute().synchronize();
        if (worker.index() == 0) ends.push_back(worker.now());
      }
    });
    return ends;
  };
  EXPECT_EQ(times(false), times(true));
  EXPECT_EQ(calls, 2 * 4 + 2);
}

// Random work, with collectives of another stream that begin and end at any moment of it.
struct RandomJob {
  explicit RandomJob(std::uint64_t seed) : random(seed) {
    for (int i = 0; i < between(2, 12); ++i) items.push_back({between(0, 5), 1000 * between(50, 2000)});
    for (int i = 0; i < 12; ++i) foreign.push_back(between(0, 2) == 0 ? 1000 * between(20, 1000) : 0);
  }
  int between(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

  void issue(Gpu& gpu) const {
    gpu.work(gpu.compute(), 1000);
    for (const auto& [kind, elements] : items) {
      switch (kind) {
        case 0:
        case 1:
          gpu.work(gpu.compute(), elements);
          break;
        case 2:
          gpu.other().wait(gpu.compute().record());
          gpu.sum(gpu.other(), elements);
          break;
        case 3:
          gpu.other().wait(gpu.compute().record());
          break;
        case 4:
          gpu.compute().wait(gpu.other().record());
          break;
        default:
          gpu.sum(gpu.compute(), elements);
      }
    }
    gpu.compute().wait(gpu.other().record());
  }

  Timeline run(bool merges, double launch_overhead_s) const {
    const RepeatOptions options{.merges_repeats = merges, .launch_overhead_s = launch_overhead_s, .are_alike = true};
    return simulate(machines(options), [this](Worker& worker) {
      Gpu gpu(worker);
      RepeatedWork repeated;
      for (const int elements : foreign) {
        if (elements > 0) gpu.sum(gpu.foreign(), elements);
        gpu.device().repeat(repeated, [&] { issue(gpu); });
      }
      gpu.device().synchronize();
    });
  }

  std::mt19937_64 random;
  std::vector<std::pair<int, int>> items{};  // kinds and elements
  std::vector<int> foreign{};                // elements of a sum before each time; 0: none
};

// Kept times are added to the start in one sum, so that the last nanosecond may be another one.
void expect_nearly_equal(const std::vector<Said>& merged, const std::vector<Said>& all, const std::string& what) {
  const auto facts = [](const Said& one) {
    return std::tuple(std::get<0>(one), std::get<1>(one), std::get<2>(one), std::get<5>(one));
  };
  ASSERT_EQ(merged.size(), all.size()) << what;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(facts(merged[i]), facts(all[i])) << what << ", record " << i;
    ASSERT_NEAR(std::get<3>(merged[i]), std::get<3>(all[i]), 1) << what << ", record " << i;
    ASSERT_NEAR(std::get<4>(merged[i]), std::get<4>(all[i]), 1) << what << ", record " << i;
  }
}

TEST(SimRepeat, TakesEqualTimesWhateverDisturbsIt) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomJob job(seed);
    for (const double launch_overhead_s : {0.0, 0.2e-6}) {
      expect_nearly_equal(said(job.run(true, launch_overhead_s)), said(job.run(false, launch_overhead_s)),
                          "seed " + std::to_string(seed) + ", launches take " + std::to_string(launch_overhead_s));
    }
  }
}

}  // namespace
}  // namespace tandem
