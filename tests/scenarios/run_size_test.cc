// What a simulation needs of this machine, estimated before it begins.
#include "scenarios/estimates/run_size.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/estimates/size_check.h"
#include "tests/address_limit.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

RunSize size_of(const Scenario& scenario, double records_of_a_step, bool symmetry) {
  return tandem::size_of(job_of(scenario), records_of_a_step, {.workers = symmetry});
}

using testing::HasSubstr;

Scenario data_parallel(int workers, int batch, int machines) {
  return read_scenario(
      fmt::format("name: size\nworkload: {{kind: layers, model: resnet15, batch: {}, dtype: f32}}\n"
                  "strategy: {{name: multi_worker_mirrored}}\nengine: {{name: sim}}\n"
                  "topology: {{cluster: {{node: hgx-h100, workers: {}}}}}\n"
                  "devices: {{type: gpu, workers: {}, per_worker: 8}}\nsteps: 5\nwarmup_steps: 1\n",
                  batch, machines, workers));
}

TEST(RunSize, CountsTheWorkersThatRepresentOthersAndTheirWitnesses) {
  const Scenario alike = data_parallel(100, 100 * 8, 100);
  EXPECT_EQ(size_of(alike, 0, true).devices, 800);
  EXPECT_EQ(size_of(alike, 0, true).simulated, 2 * 8);
  EXPECT_EQ(size_of(alike, 0, false).simulated, 800);
  EXPECT_EQ(size_of(alike, 10, true).records, 2 * 8 * 5 * 10);
  // Six workers have twice the examples, one has them on two devices; few workers all run, and so do those that share
  // a machine.
  EXPECT_EQ(size_of(data_parallel(100, 100 * 8 + 50, 100), 0, true).simulated, 2 * 2 * 8 + 8);
  EXPECT_EQ(size_of(data_parallel(4, 4 * 8, 4), 0, true).simulated, 4 * 8);
  Scenario shared = data_parallel(1, 100 * 8, 1);
  shared.devices.workers = 100;
  EXPECT_EQ(size_of(shared, 0, true).simulated, 800);
}

TEST(RunSize, SaysWhatIsNeededAndWhatThereIs) {
  const RunSize size{.devices = 1'000'000, .simulated = 1'000'000, .records = 0};
  EXPECT_EQ(size_problem(size, 16.8e9), "");
  EXPECT_EQ(size_problem(size, 16.7e9),
            "1000000 devices, 1000000 of them simulated, need about 16.80 GB of this machine's memory; 16.70 GB is "
            "available (fewer devices or steps, or engine: {records: steps}, need less)");
  const RunSize represented{.devices = 1'000'000, .simulated = 16, .records = 1e5};
  EXPECT_EQ(size_problem(represented, 1.9e9), "");
  EXPECT_THAT(size_problem(represented, 1e9),
              HasSubstr("1000000 devices, 16 of them simulated and their 1e+05 records, need about 1.82"));
  EXPECT_EQ(host_size_problem(100, 2e9, 200e9), "");
  EXPECT_EQ(
      host_size_problem(100, 2e9, 199e9),
      "100 devices need about 200.0 GB of this machine's memory; 199.0 GB is available (fewer devices need less)");
  EXPECT_NE(host_size_problem(1'000'000, 0, 100e9), "") << "a device takes something whatever it works on";
  EXPECT_EQ(thread_problem(1000, 1000), "");
  EXPECT_EQ(thread_problem(1001, 1000),
            "1001 devices need at least as many threads; this system allows 1000 (simulations need none)");
}

TEST(RunSize, StacksTakeAddressSpace) {
  const RunSize size{.devices = 8000, .simulated = 8000, .records = 0};
  EXPECT_EQ(size_problem(size, 1e9), "");
  EXPECT_EQ(address_problem(size, 9.8e9), "");
  EXPECT_EQ(address_problem(size, 9.7e9),
            "8000 devices, 8000 of them simulated, need about 9.734 GB of address space; `ulimit -v` leaves 9.700 GB "
            "(a higher limit, or fewer devices)");
}

TEST(RunSize, StacksTakeAreasOfMemory) {
  const RunSize size{.devices = 40'000, .simulated = 40'000, .records = 0};
  EXPECT_EQ(area_problem(size, 80'000), "");
  EXPECT_EQ(area_problem(size, 63'530),
            "40000 devices, 40000 of them simulated, need about 80000 areas of memory for their stacks; 63530 are "
            "available (a larger vm.max_map_count, or fewer devices)");
}

TEST(RunSize, AnInputThatHasNoRoomIsRefused) {
  check_memory("a small input", 1e6, "nothing needs less");
  try {
    check_memory("a trace of 3 PB", 9e15, "fewer steps need less");
    FAIL() << "not refused";
  } catch (const SizeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a trace of 3 PB needs about 9.000 PB of this machine's memory; "));
    EXPECT_THAT(error.what(), HasSubstr(" is available (fewer steps need less)"));
  }
}

TEST(SizeCheck, RefusesWhatTheLimitOfAddressSpaceHasNoRoomFor) {
  if (!kHasAddressLimits) GTEST_SKIP() << "sanitizers need all addresses";
  const Scenario alike = data_parallel(1000, 1000 * 8, 1000);
  const AddressLimit limit(rlim_t{4} << 30);
  SizeCheck(job_of(alike), {.workers = true}, [] { return 0; }).before_run();
  try {
    SizeCheck(job_of(alike), {}, [] { return 0; }).before_run();
    FAIL() << "not refused";
  } catch (const SizeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("8000 devices, 8000 of them simulated, need about 9.734 GB of address space"));
  }
}

// 64 devices with 102 MB of parameters each, as many of gradients, and what they reduce and copy.
TEST(SizeCheck, ComputedValuesTakeMemoryOnEveryDevice) {
  const auto training = [](const std::string& values) {
    return read_scenario(
        "name: values\nworkload: {kind: layers, model: resnet50, batch: 64, dtype: f32}\n"
        "strategy: {name: multi_worker_mirrored}\nengine: {name: sim, values: " +
        values +
        "}\ntopology: {cluster: {node: hgx-h100, workers: 8}}\ndevices: {type: gpu, workers: 8, per_worker: 8}\n"
        "steps: 2\nwarmup_steps: 1\n");
  };
  EXPECT_EQ(size_of(training("none"), 0, true).value_bytes, 0);
  const RunSize size = size_of(training("real"), 0, false);
  EXPECT_NEAR(size.value_bytes, 64 * 273e6, 64 * 1e6);
  EXPECT_THAT(size_problem(size, 6e9),
              HasSubstr("64 devices, 64 of them simulated with 17.48 GB of values, need about"));
  EXPECT_THAT(address_problem(size, 6e9), HasSubstr("`ulimit -v` leaves 6.000 GB (a higher limit, values: none, or "));
  if (!kHasAddressLimits) GTEST_SKIP() << "sanitizers need all addresses";
  const AddressLimit limit(rlim_t{6} << 30);
  EXPECT_THROW(run_scenario(training("real")), SizeError);
}

TEST(SizeCheck, TakesNoMoreThanItsShareOfTheMemory) {
  const Scenario alike = data_parallel(100, 100 * 8, 100);
  SizeCheck(job_of(alike), {.workers = true}, [] { return 0; }).before_run();
  EXPECT_THROW(SizeCheck(
                   job_of(alike), {.workers = true}, [] { return 0; }, 1e-9)
                   .before_run(),
               SizeError);
}

TEST(SizeCheck, RefusesBeforeTheRunAndCountsRecordsOfLargeJobsOnly) {
  int counted = 0;
  const auto records = [&counted](double of_a_step) { return [&counted, of_a_step] { return ++counted, of_a_step; }; };
  const Scenario alike = data_parallel(100, 100 * 8, 100);
  SizeCheck(job_of(alike), {.workers = true}, records(1e15)).before_run();
  EXPECT_EQ(counted, 0);
  try {
    SizeCheck(job_of(alike), {}, records(1e15)).before_run();
    FAIL() << "not refused";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in_memory.yaml:"));
    EXPECT_THAT(error.what(), HasSubstr("devices: 800 devices, 800 of them simulated and their 4e+18 records, need"));
  }
  EXPECT_EQ(counted, 1);
}

TEST(SizeCheck, AModelThatThisMachineCannotHoldForEveryDeviceIsRefused) {
  const Scenario scenario = read_scenario(
      "name: large\nworkload: {kind: layers, model: bert_large, batch: 2000, dtype: f32}\nstrategy: {name: mirrored}\n"
      "engine: {name: cpu}\ndevices: {type: cpu, per_worker: 2000}\nsteps: 1\n");
  try {
    SizeCheck(job_of(scenario), {}, [] { return 0; }).before_run();
    FAIL() << "not refused";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("devices: 2000 devices need about "));
  }
}

TEST(SizeCheck, RefusesWorkersThatTurnOutToDiffer) {
  const Scenario alike = data_parallel(100, 100 * 8, 100);
  const Job job = job_of(alike);
  SizeCheck check(job, {.workers = true}, [] { return 1e15; });
  check.before_run();
  for (int worker = 0; worker < 100; ++worker) check.begin_worker();
  check.before_next_run();
  check.begin_worker();
  EXPECT_THROW(check.begin_worker(), RunError);
}

TEST(SizeCheck, ASimulationOfTooManyStepsIsRefused) {
  Scenario alike = data_parallel(2, 2 * 8, 2);
  alike.steps = 1'000'000'000;
  try {
    run_scenario(alike);
    FAIL() << "not refused";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("16 devices, 16 of them simulated and their "));
  }
}

}  // namespace
}  // namespace tandem
