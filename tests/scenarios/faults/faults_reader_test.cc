#include "scenarios/faults/faults_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/faults/durations.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Scenario with_faults(const std::string& faults) {
  return read_scenario(
      "workload: {kind: layers, model: resnet50, batch: 256, dtype: bf16}\nstrategy: {name: multi_worker_mirrored}\n"
      "engine: {name: sim}\ntopology: {cluster: {node: hgx-h100, workers: 4, fabric: switch}}\n"
      "devices: {type: gpu, per_worker: 8}\nsteps: 20\n" +
      faults);
}

std::string refused(const std::string& faults) {
  try {
    with_faults(faults);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Durations, HaveUnitsUpToDays) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("20ms"), 0.02);
  EXPECT_EQ(parse_duration("6min"), 360);
  EXPECT_EQ(parse_duration("8 h"), 28800);
  EXPECT_EQ(parse_duration("1.5d"), 129600);
  EXPECT_EQ(parse_duration("0s"), 0);
  EXPECT_EQ(parse_duration("8 hours"), std::nullopt);
  EXPECT_EQ(parse_duration("min"), std::nullopt);
  EXPECT_EQ(parse_duration("5ms min"), std::nullopt);
}

TEST(FaultsReader, ReadsEveryKindOfFault) {
  const Scenario scenario = with_faults(
      "faults:\n"
      "  - slow: {device: \"worker:3/GPU:5\", factor: 1.5, from: 20s, to: 80s}\n"
      "  - slow: {worker: any, factor: 2, every: {mtbf: 10min, duration: 30s, seed: 5}}\n"
      "  - slow: {link: w1.nic0, factor: 4, steps: 3..7}\n"
      "  - jitter: {on: network, cv: 0.03, seed: 7}\n"
      "  - fail: {worker: 2, at: 95s, back_after: never}\n"
      "  - fail: {worker: each, mttf: 8h, back_after: 6min}\n"
      "recovery: {policy: spare, spares: 2, detection: 30s, restart: 3min,\n"
      "           checkpoint: {every: 500 steps, time: 4s, overlapped: true, load: 20s}}\n");
  ASSERT_NE(scenario.faults, nullptr);
  const FaultSettings& faults = *scenario.faults;
  ASSERT_THAT(faults.slow, SizeIs(3));
  EXPECT_EQ(faults.slow[0].target.task, 3);
  EXPECT_EQ(faults.slow[0].target.device, 5);
  EXPECT_EQ(faults.slow[0].when.to_s, 80);
  EXPECT_EQ(faults.slow[1].again->mean_s, 600);
  EXPECT_EQ(faults.slow[1].target.which, FaultTarget::Which::any);
  EXPECT_THAT(faults.slow[2].target.links, SizeIs(testing::Ge(1U)));
  EXPECT_EQ(faults.slow[2].when.first_step, 3);
  EXPECT_EQ(faults.slow[2].when.last_step, 7);
  ASSERT_THAT(faults.jitter, SizeIs(1));
  EXPECT_EQ(faults.jitter[0].on, Jitter::On::network);
  ASSERT_THAT(faults.fail, SizeIs(2));
  EXPECT_EQ(faults.fail[0].at_s, 95);
  EXPECT_EQ(faults.fail[1].mttf_s, 28800);
  EXPECT_EQ(faults.recovery.policy, RecoveryPolicy::spare);
  EXPECT_EQ(faults.recovery.checkpoint.every_steps, 500);
  EXPECT_TRUE(faults.recovery.checkpoint.overlapped);
}

TEST(FaultsReader, SaysWhatIsWrong) {
  EXPECT_THAT(refused("faults:\n  - slow: {worker: 4, factor: 2}\n"),
              HasSubstr("faults[0].slow.worker: must be from 0 to 3, found 4"));
  EXPECT_THAT(refused("faults:\n  - slow: {worker: 1, factor: 0.5}\n"), HasSubstr("factor"));
  EXPECT_THAT(refused("faults:\n  - slow: {factor: 2}\n"), HasSubstr("worker"));
  EXPECT_THAT(refused("faults:\n  - slow: {device: \"worker:9/GPU:0\", factor: 2}\n"),
              HasSubstr("has the tasks 0 to 3, found 9"));
  EXPECT_THAT(refused("faults:\n  - slow: {device: \"worker:1/GPU:8\", factor: 2}\n"),
              HasSubstr("8 devices of type GPU, found GPU:8"));
  EXPECT_THAT(refused("faults:\n  - slow: {link: w1.nic99, factor: 2}\n"), HasSubstr("no node 'w1.nic99'"));
  EXPECT_THAT(refused("faults:\n  - slow: {worker: 1, factor: 2, from: 20s, to: 10s}\n"),
              HasSubstr("must be later than `from`"));
  EXPECT_THAT(refused("faults:\n  - slow: {worker: 1, factor: 2, from: 20s, steps: 1..3}\n"),
              HasSubstr("either from one time"));
  EXPECT_THAT(refused("faults:\n  - fail: {worker: 1}\n"), HasSubstr("at"));
  EXPECT_THAT(refused("faults:\n  - fail: {worker: any, at: 3s}\n"), HasSubstr("at random (mttf)"));
  EXPECT_THAT(refused("faults:\n  - fail: {ps: 0, at: 3s}\n"), HasSubstr("no task of 'ps'"));
  EXPECT_THAT(refused("faults:\n  - fail: {worker: 1, step: 20}\n"), HasSubstr("must be from 0 to 19"));
  EXPECT_THAT(refused("faults:\n  - slow: {device: \"ps:0/GPU:0\", factor: 2}\n"), HasSubstr("trains on no device"));
  EXPECT_THAT(refused("faults:\n  - explode: {}\n"), HasSubstr("slow, jitter, fail"));
  EXPECT_THAT(refused("faults:\n  - fail: {worker: 1, at: soon}\n"), HasSubstr("expected a time such as 30s"));
  EXPECT_THAT(refused("faults:\n  - trace: nowhere.csv\n"), HasSubstr("nowhere.csv"));
  EXPECT_THAT(refused("recovery: {spares: 2}\n"), HasSubstr("policy: spare"));
  EXPECT_THAT(refused("recovery: {checkpoint: {every: 5 epochs}}\n"), HasSubstr("500 steps or 10min"));
}

}  // namespace
}  // namespace tandem
