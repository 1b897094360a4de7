// Workers that are lost on purpose on an engine of this machine, and whether the others go on.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kSteps = 12;

Report run_with(const std::string& faults, const std::string& strategy = "parameter_server") {
  const Scenario scenario = read_scenario(
      "workload: {kind: mlp, data: digits, hidden: [16], batch: 96, learning_rate: 0.1, seed: 1}\n"
      "strategy: {name: " +
      strategy + "}\nengine: {name: cpu}\ntopology: this machine\ndevices: {type: cpu, workers: 3" +
      (strategy == "parameter_server" ? ", ps: 1" : "") + "}\nsteps: 12\nwarmup_steps: 2\n" + faults);
  return run_scenario(scenario, {.measures_scaling = false, .injects_faults = true}).report;
}

std::string failure_with(const std::string& faults, const std::string& strategy = "parameter_server") {
  try {
    run_with(faults, strategy);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ThreadLosses, AsynchronousWorkersGoOnWithoutOne) {
  for (const char* policy : {"", "recovery: {policy: continue}\n"}) {
    for (const char* when : {"step: 5", "at: 0s"}) {
      const Report report = run_with(std::string("faults: [fail: {worker: 2, ") + when + "}]\n" + policy);
      EXPECT_THAT(report.loss, AllOf(SizeIs(kSteps), Each(testing::Truly([](double x) { return std::isfinite(x); }))));
      EXPECT_THAT(report.notes, testing::Not(testing::Contains(HasSubstr("recovery.policy")))) << "it has an effect";
    }
  }
}

TEST(ThreadLosses, WhatNobodyGoesOnWithoutEndsTheRun) {
  EXPECT_THAT(failure_with("faults: [fail: {worker: 0, step: 5}]\n"), HasSubstr("/job:worker/task:0 was lost"));
  EXPECT_THAT(failure_with("faults: [fail: {worker: 2, step: 5}]\nrecovery: {policy: end}\n"),
              HasSubstr("/job:worker/task:2 was lost"));
  EXPECT_THAT(failure_with("recovery: {policy: continue}\n", "multi_worker_mirrored"),
              HasSubstr("do not go on without one that is lost"));
}

}  // namespace
}  // namespace tandem
