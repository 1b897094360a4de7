// What is known of engines without opening them, and the options and workers that each refuses, in the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_info.h"
#include "tests/conformance/worlds.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(Engines, AreDescribedWhetherBuiltOrNot) {
  std::vector<std::string_view> names;
  for (const EngineInfo& engine : all_engines()) names.push_back(engine.name);
  EXPECT_THAT(names, ElementsAre("cpu", "cuda", "mpi", "sim"));
  EXPECT_EQ(find_engine("abacus"), nullptr);
  EXPECT_EQ(&engine_info("sim"), find_engine("sim"));
  EXPECT_EQ(machine_engine().name, "cpu");
  EXPECT_EQ(model_engine().name, "sim");
  EXPECT_EQ(engine_info("cuda").default_device, DeviceType::gpu);
}

TEST(Engines, WhatIsNotBuiltIsNotUnknown) {
  EXPECT_THAT(
      [] { open_engine("sims", {}); },
      ThrowsMessage<UnavailableError>("unknown engine 'sims' (one of cpu, cuda, mpi, sim); did you mean 'sim'?"));
  for (const EngineInfo& engine : all_engines()) {
    if (engine.built()) continue;
    const std::string message = "engine '" + std::string(engine.name) + "' is not built (built: ";
    EXPECT_THAT([&] { open_engine(engine.name, {}); }, ThrowsMessage<UnavailableError>(testing::StartsWith(message)));
  }
}

// With "mpi", the one that is found comes first.
TEST(Engines, NameTheLibrariesThatTheyWereBuiltWith) {
  for (const std::string& name : built_engines()) {
    const LibraryVersions libraries = engine_info(name).libraries();
    EXPECT_FALSE(libraries.empty()) << name;
    for (const auto& [library, version] : libraries) {
      const bool is_file = library.ends_with("_file");  // where it was found, not which version
      EXPECT_THAT(version, testing::ContainsRegex(is_file ? "^/" : "(^|built with .*)[0-9]+[.][0-9]+")) << library;
    }
  }
}

// Every engine of this build, as its description says it can be opened.
class EngineOptionsTest : public testing::TestWithParam<std::string> {
 protected:
  const EngineInfo& engine() const { return engine_info(GetParam()); }
  std::string named(const std::string& text) const { return "engine '" + GetParam() + "' " + text; }
  EngineOptions options(int workers = 1) const {
    EngineOptions options;
    options.workers.clear();
    for (int task = 0; task < workers; ++task) {
      options.workers.push_back({.task = task, .topology_worker = task, .device_type = engine().default_device});
    }
    if (engine().needs_topology) options.topology = small_cluster(std::max(1, workers), 1);
    return options;
  }
  void expect_refused(const EngineOptions& wrong, const std::string& message) const {
    EXPECT_THAT([&] { open_engine(GetParam(), wrong); }, ThrowsMessage<UsageError>(message));
  }
  // Where the engine has the option, the description says so and check_options() lets it pass.
  void expect_refused_without(bool has_option, const EngineOptions& given, const std::string& message) const {
    if (!has_option) return expect_refused(given, named(message));
    EXPECT_NO_THROW(check_options(engine(), given));
  }
};

TEST_P(EngineOptionsTest, NameWhatAnEngineDoesNotHave) {
  EngineOptions wrong = options();
  wrong.values = ValueMode::none;
  expect_refused_without(engine().optional_values, wrong,
                         "has no option values: none; its tensors always carry values (values: real)");
  wrong = options();
  wrong.collectives = CollectiveFidelity::fluid;
  expect_refused_without(engine().models_collectives, wrong,
                         "has no option collectives; it executes them, and models none");
  wrong = options();
  wrong.schedule_seed = 1;
  expect_refused_without(engine().seeded_schedule, wrong,
                         "has no option schedule_seed; its threads are scheduled by the operating system");
  wrong = options();
  wrong.graphs = true;
  expect_refused_without(engine().graphs, wrong, "has no option graphs; it makes no graphs of launches");
  wrong = options();
  wrong.alike = {0};
  expect_refused_without(engine().symmetry, wrong, "has no option alike; every worker runs");
  wrong = options();
  wrong.merges_repeats = true;
  expect_refused_without(engine().symmetry, wrong, "has no option merges_repeats; all work is done");
  wrong = options();
  wrong.topology = nullptr;
  expect_refused_without(!engine().needs_topology, wrong, "needs a topology to simulate");
  wrong = options();
  wrong.workers[0].device_type = DeviceType::gpu;
  expect_refused_without(engine().device_types.size() == 2, wrong,
                         "has no devices of type GPU, as /job:worker/task:0 asks for (it has CPU)");
}

TEST_P(EngineOptionsTest, RefuseStepsOfNoDevicesAndImpossibleSpreads) {
  EngineOptions wrong = options();
  wrong.devices_in_step = 0;
  expect_refused(wrong, "0 devices are in step, must be at least 1");
  wrong = options();
  wrong.work_spread = 1.5;
  expect_refused(wrong, "the work spread is 1.5, must be 0 to 1");
}

TEST_P(EngineOptionsTest, RefuseWorkersThatMakeNoCluster) {
  EngineOptions wrong = options(2);
  wrong.workers[1].task = 0;
  expect_refused(wrong, "/job:worker/task:0 is there twice, must be there once");
  wrong = options();
  wrong.workers[0].device_count = -1;
  expect_refused(wrong, "/job:worker/task:0 has -1 devices, must be 0 or more");
  expect_refused(options(0), named("needs at least one worker"));
  wrong = options();
  wrong.workers[0].job = "a b";
  expect_refused(wrong, "/job:a b/task:0 is no name of a worker, must be like /job:worker/task:0");
  wrong = options();
  wrong.deadlock_timeout_s = 0;
  expect_refused(wrong, "the deadlock timeout is 0 s, must be greater than 0");
}

TEST_P(EngineOptionsTest, AreThoseOfItsCapabilities) {
  std::unique_ptr<Engine> opened;
  try {
    opened = open_engine(GetParam(), options());
  } catch (const UnavailableError& error) {
    GTEST_SKIP() << error.what();
  }
  const Capabilities& capabilities = opened->capabilities();
  EXPECT_EQ(capabilities.engine, engine().name);
  EXPECT_THAT(engine().device_types, testing::IsSupersetOf(capabilities.device_types))
      << "of what was opened, which may be without GPUs";
  EXPECT_EQ(capabilities.carries_values, !engine().optional_values) << "by default";
}

INSTANTIATE_TEST_SUITE_P(Built, EngineOptionsTest, testing::ValuesIn(built_engines()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace tandem
