// Random jobs end with the same figures whether workers represent others or not, to the nanosecond.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/scenarios/symmetric_jobs.h"

namespace tandem {
namespace {

using symmetric::expect_equal_runs;
using symmetric::layers;
using symmetric::SymmetricJob;

// Random numbers from a seed, the same on every machine.
class Choices {
 public:
  explicit Choices(int seed) : random_(static_cast<std::mt19937::result_type>(seed)) {}
  int number(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1));
  }
  bool one_in(int count) { return number(1, count) == 1; }
  template <class Choice>
  Choice of(const std::vector<Choice>& choices) {
    return choices[random_() % choices.size()];
  }

 private:
  std::mt19937 random_;
};

// Returns tori of one, two and three dimensions with so many workers.
std::vector<std::string> tori_of(int workers) {
  std::vector<std::string> tori = {fmt::format("[{}]", workers)};
  for (int a = 2; a <= workers / 2; ++a) {
    if (workers % a != 0) continue;
    tori.push_back(fmt::format("[{}, {}]", a, workers / a));
    for (int b = 2; b <= workers / a / 2; ++b) {
      if (workers / a % b == 0) tori.push_back(fmt::format("[{}, {}, {}]", a, b, workers / a / b));
    }
  }
  return tori;
}

std::string random_fabric(Choices& choose, int workers) {
  const auto number = [&choose](int least, int most) { return choose.number(least, most); };
  switch (number(0, 5)) {
    case 0:
      return "switch";
    case 1:
      return fmt::format("{{kind: leaf_spine, workers_per_leaf: {}, spines: {}, oversubscription: {}}}", number(1, 6),
                         number(1, 4), number(1, 8));
    case 2:
      return fmt::format("{{kind: rail, workers_per_leaf: {}, spines: {}, oversubscription: {}}}", number(1, 6),
                         number(1, 4), number(1, 8));
    case 3:
      return fmt::format(
          "{{kind: fat_tree, workers_per_leaf: {}, leaves_per_pod: {}, spines: {}, cores_per_spine: {}, "
          "core_oversubscription: {}, rails: {}}}",
          number(1, 3), number(1, 3), number(1, 3), number(1, 3), number(1, 4), choose.one_in(2));
    case 4:
      return fmt::format("{{kind: torus, dimensions: {}, oversubscription: {}}}", choose.of(tori_of(workers)),
                         number(1, 8));
    default:
      return fmt::format(
          "{{kind: dragonfly, workers_per_leaf: {}, leaves_per_pod: {}, spines: {}, core_oversubscription: {}, "
          "rails: {}}}",
          number(1, 3), number(1, 3), number(1, 3), number(1, 4), choose.one_in(2));
  }
}

// A perceptron divided among all devices by one strategy, or among those of a mesh.
void divide_at_random(SymmetricJob& job, Choices& choose) {
  const int devices = job.workers * job.per_worker;
  const int kind = choose.number(0, 5);
  std::string hidden = "256, 512, 256";
  int replicas = 1;
  if (kind == 0 && devices <= 64) {
    // Each device has a part of every layer, the first of which has 64 inputs.
    job.strategy = "{name: tensor_parallel}";
    hidden = "512, 512";
  } else if (kind == 1 && devices <= 32) {
    job.strategy = "{name: pipeline_parallel, micro_batches: 4}";
    hidden = "64";
    for (int i = 0; i < devices; ++i) hidden += ", 64";
  } else {
    const int tensor = choose.of(std::vector{1, job.per_worker});
    const int pipeline = choose.of(std::vector{1, 2});
    const bool is_whole = devices % (tensor * pipeline) == 0;
    replicas = devices / (is_whole ? tensor * pipeline : tensor);
    job.strategy = fmt::format("{{name: mesh, data: {}, tensor: {}, pipeline: {}, micro_batches: 2}}", replicas, tensor,
                               is_whole ? pipeline : 1);
  }
  const int batch = replicas > 1 && choose.one_in(3) ? replicas * 4 + choose.number(0, 3) : replicas * 8;
  job.workload = fmt::format("{{kind: mlp, hidden: [{}], batch: {}}}", hidden, batch);
}

SymmetricJob random_job(int seed) {
  Choices choose(seed);
  SymmetricJob job;
  job.machine = choose.of<std::string>({"hgx-h100", "dgx1-v100", "dgx2", "dgx-a100", "pcie-8gpu", "mi300x-8gpu"});
  job.workers = choose.number(5, 16);
  job.per_worker = choose.one_in(2) ? 8 : 1 << choose.number(0, 2);
  job.fabric = random_fabric(choose, job.workers);
  const int replicas = job.workers * job.per_worker;
  const int batch = replicas * choose.number(1, 4) + (choose.one_in(2) ? 0 : choose.number(0, replicas));
  job.workload = layers(batch, choose.of<std::string>({"100KB", "1MB", "5MB", "25MB"}));
  job.strategy = choose.of<std::string>({"{name: multi_worker_mirrored}", "{name: fully_sharded}"});
  job.has_chief = choose.one_in(3);
  if (choose.one_in(2)) divide_at_random(job, choose);
  job.has_straggler = choose.one_in(4);
  job.has_slow_link = choose.one_in(4);
  return job;
}

constexpr int kSeeds = 60;

// Random jobs; the seed is part of the test's name.
class RandomSymmetry : public testing::TestWithParam<int> {};

TEST_P(RandomSymmetry, EqualsTheFullSimulation) {
  expect_equal_runs(random_job(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSymmetry, testing::Range(1, kSeeds + 1));

// What the comparison is worth: in how many of the jobs some workers represent others, over all and by strategy.
TEST(Symmetry, RandomJobsUseIt) {
  std::map<std::string, int> jobs, used;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const SymmetricJob job = random_job(seed);
    const bool is_used = !symmetric::run(job, true).timeline.classes.empty();
    const std::string strategy = job.strategy.substr(0, job.strategy.find_first_of(",}"));
    for (const std::string& name : {std::string("all"), strategy}) {
      ++jobs[name];
      used[name] += is_used ? 1 : 0;
    }
  }
  for (const auto& [name, count] : jobs) {
    RecordProperty(name, fmt::format("{} of {}", used[name], count));
    std::cout << name << ": " << used[name] << " of " << count << "\n";
  }
  EXPECT_GE(used["all"] * 2, jobs["all"]);
}

}  // namespace
}  // namespace tandem
