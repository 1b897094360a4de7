// Scenarios whose parameter servers update all workers' variables together: times, figures and keys. What the workers
// compute is in strategies_test.cc and in the conformance suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/run/report_json.h"
#include "scenarios/estimates/run_size.h"
#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

constexpr int kTrainingWorkers = 4;

std::string job_with_servers(const std::string& strategy, const std::string& engine = "") {
  return "workload: {kind: layers, model: layers_small, batch: 4096, bucket_bytes: 1MB}\nstrategy: {" + strategy +
         "}\nengine: {name: sim" + engine +
         "}\ntopology: {cluster: {node: hgx-h100, workers: 6}}\n"
         "devices: {workers: 4, per_worker: 2, ps: 2}\nsteps: 12\nwarmup_steps: 4\n";
}

const std::string kInStep = "name: parameter_server, updates: sync",
                  kAtTheirOwnPace = "name: parameter_server, updates: async";

Report servers_report(const std::string& text) {
  return run_unscaled(read_scenario(text));
}

TEST(ServersInStep, ReportOneStepOfAllWorkers) {
  const Report report = servers_report(job_with_servers(kInStep));
  EXPECT_FALSE(report.asynchronous);
  EXPECT_EQ(report.replicas, 2 * kTrainingWorkers);
  EXPECT_EQ(report.parameter_servers, 2);
  EXPECT_EQ(report.summary.step_time.samples, 8) << "a step of all workers is a step";
  EXPECT_FALSE(report.metrics.contains("staleness_mean"));
}

TEST(ServersInStep, TakeTheSameTimeAgainAndWithoutShortCuts) {
  const std::string text = report_to_json(servers_report(job_with_servers(kInStep))).dump();
  EXPECT_EQ(report_to_json(servers_report(job_with_servers(kInStep))).dump(), text);
  const Report whole = servers_report(job_with_servers(kInStep, ", symmetry: off, steady_state: off"));
  EXPECT_EQ(whole.summary.step_time.mean, servers_report(job_with_servers(kInStep)).summary.step_time.mean);
}

TEST(ServersInStep, WaitForTheSlowestWorker) {
  const auto with_slow_worker = [](const std::string& strategy) {
    std::string text = job_with_servers(strategy);
    const std::string nodes = "node: hgx-h100, workers: 6";
    text.replace(text.find(nodes), nodes.size(), nodes + ", overrides: {w2.gpu0: {launch_overhead: 2ms}}");
    return servers_report(text);
  };
  const auto worker_ratio = [&](const std::string& strategy, std::size_t worker) {
    const Report slow = with_slow_worker(strategy), usual = servers_report(job_with_servers(strategy));
    return static_cast<double>(slow.summary.workers.at(worker).step_time.median) /
           static_cast<double>(usual.summary.workers.at(worker).step_time.median);
  };
  EXPECT_GT(worker_ratio(kAtTheirOwnPace, 2), 1.5);
  EXPECT_LT(worker_ratio(kAtTheirOwnPace, 0), 1.1);
  EXPECT_GT(worker_ratio(kInStep, 2), 1.5);
  EXPECT_GT(worker_ratio(kInStep, 0), 1.5);
}

TEST(ServersInStep, KeepAnAccumulatorForEachVariable) {
  const Scenario sync = read_scenario(job_with_servers(kInStep)),
                 async = read_scenario(job_with_servers(kAtTheirOwnPace));
  const double of_sync = tensor_bytes_of_servers(job_of(sync)), of_async = tensor_bytes_of_servers(job_of(async));
  EXPECT_GT(of_async, 0);
  EXPECT_EQ(of_sync, 2 * of_async);
}

TEST(ServersInStep, WhatHasNoEffectIsNamed) {
  const auto notes = [](const std::string& devices) {
    return servers_report("workload: {kind: mlp, batch: 32, hidden: [16]}\nstrategy: {" + kInStep +
                          "}\ndevices: " + devices + "\nsteps: 2\n")
        .notes;
  };
  using testing::Contains;
  using testing::HasSubstr;
  EXPECT_THAT(notes("{workers: 1, per_worker: 2}"),
              Contains(HasSubstr("strategy.updates: there is no parameter server")));
  EXPECT_THAT(notes("{workers: 1, per_worker: 2, ps: 1}"),
              Contains(HasSubstr("strategy.updates: the only worker waits for nobody")));
}

// Servers handle their calls one after another, whatever the network and their processors do meanwhile.
TEST(RemoteCalls, TakeAServersTimeUnlessTheyAreSwitchedOff) {
  const auto step_s = [](const std::string& network) {
    std::string text = job_with_servers(kAtTheirOwnPace);
    text.replace(text.find("ps: 2"), 5, "ps: 1");
    const std::string nodes = "node: hgx-h100, workers: 6";
    text.replace(text.find(nodes), nodes.size(), nodes + ", overrides: {network: {" + network + "}}");
    const Report report = servers_report(text);
    return static_cast<double>(report.summary.step_time.mean) * 1e-9;
  };
  const std::string free = "remote_call: 0s, remote_call_bandwidth: 0B/s";
  EXPECT_LT(step_s(free), step_s("remote_call: 2ms, remote_call_bandwidth: 0B/s"));
  // So long that nothing else matters: 4 workers read each variable for 2 replicas, and update it once.
  const double step_of_calls_s = step_s("remote_call: 10ms, remote_call_bandwidth: 0B/s");
  const double calls = step_of_calls_s / 10e-3;
  EXPECT_NEAR(calls / (kTrainingWorkers * 3), std::round(calls / (kTrainingWorkers * 3)), 0.05)
      << calls << " calls in a step";
}

TEST(RemoteCalls, AreAssumedFiguresOfAReport) {
  const RunResult result = run_scenario(read_scenario(job_with_servers(kAtTheirOwnPace)));
  EXPECT_TRUE(result.timeline.consulted.contains("network.remote_call")) << "by its name in the topology";
  EXPECT_TRUE(result.timeline.consulted.contains("network.remote_call_bandwidth"));
}

}  // namespace
}  // namespace tandem
