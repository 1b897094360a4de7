#include "tests/fuzz/run_checks.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "scenarios/job/job.h"
#include "scenarios/plan/step_bound.h"
#include "scenarios/run/runner.h"
#include "scenarios/sweep/sweep.h"

namespace tandem::fuzz {
namespace {

std::string under_test;  // NOLINT(cert-err58-cpp)

// Jobs of more records are run once.
constexpr std::size_t kQuick = 40'000;

// Transfers that meet on a link in one run may pass one another in a slower one: of 1,892 random jobs, four were up to
// 1 % faster on slower GPUs, three of them with parameter servers.
constexpr double kNoFaster = 0.98;

constexpr double kRounding = 1e-6;  // of times to nanoseconds, kernel by kernel

RunOptions one_run() {
  RunOptions options;
  options.measures_scaling = false;
  options.memory_share = 0.1;
  return options;
}

// Returns the first number of a report that is not finite, which reports say by null. An error that is not known is
// null, too.
std::string infinite_number(const nlohmann::ordered_json& value, const std::string& path) {
  if (value.is_null()) return path + " is not finite";
  if (!value.is_structured()) return {};
  for (const auto& [key, member] : value.items()) {
    if (key == "expected_error") continue;
    std::string problem = infinite_number(member, path + "." + key);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string problem_of_times(const RunResult& result) {
  for (const Record& record : result.timeline.records) {
    if (record.start_ns < 0 || record.end_ns < record.start_ns) {
      return fmt::format("'{}' takes from {} to {} ns", record.name.text(), record.start_ns, record.end_ns);
    }
  }
  if (result.report.summary.step_time.median <= 0) return "a step takes no time";
  std::string text = report_text(result.report);
  for (const char* broken : {" nan", " -nan", " inf"}) {
    const std::size_t at = text.find(broken);
    if (at != std::string::npos && !std::isalpha(text[at + std::strlen(broken)])) return text;
  }
  return infinite_number(report_to_json(result.report), "report");
}

// What is the same in runs that are the same.
std::string times_of(const RunResult& result) {
  std::string times;
  const Summary& summary = result.report.summary;
  for (const Nanoseconds time : {summary.step_time.median, summary.step_time.min, summary.step_time.p95}) {
    times += fmt::format("{} ", time);
  }
  for (const StepPart& part : step_figures()) times += fmt::format("{} {} ", part.name, summary.per_step.*part.time);
  return times;
}

std::string difference(const char* what, const RunResult& run, const RunResult& other) {
  return times_of(run) == times_of(other) ? "" : fmt::format("{}: {}, not {}", what, times_of(other), times_of(run));
}

// The devices that train, with everything they do taking twice as long.
std::shared_ptr<const Topology> slower(const Topology& topology) {
  auto changed = std::make_shared<Topology>(topology);
  std::map<const DeviceModel*, std::shared_ptr<const DeviceModel>> models;
  for (NodeIndex node = 0; node < topology.node_count(); ++node) {
    if (topology.kind(node) != NodeKind::gpu) continue;
    auto& model = models[topology.device(node).get()];
    if (!model) {
      auto half = std::make_shared<DeviceModel>(*topology.device(node));
      half->memory_bandwidth_bytes_per_s.value /= 2;
      half->boost_clock_hz.value /= 2;
      for (auto& [dtype, peak] : half->peak_flops_per_s) peak.value /= 2;
      model = std::move(half);
    }
    changed->set_device(node, model);
  }
  return changed;
}

std::string problem_on_slower_gpus(const Scenario& scenario, const RunResult& run) {
  Scenario on_slower_gpus = scenario;
  on_slower_gpus.topology = slower(*scenario.topology);
  const RunResult on_slower = run_scenario(on_slower_gpus, one_run());
  const auto time = static_cast<double>(run.report.summary.step_time.median);
  if (static_cast<double>(on_slower.report.summary.step_time.median) >= kNoFaster * time) return {};
  return fmt::format("faster on slower GPUs: {} ns, not {}", on_slower.report.summary.step_time.median,
                     run.report.summary.step_time.median);
}

std::string problem_of_repetitions(const Scenario& scenario, const RunResult& run) {
  if (run.timeline.records.size() > kQuick) return {};
  std::string problem = difference("again", run, run_scenario(scenario, one_run()));
  Scenario of_every_worker = scenario;
  of_every_worker.engine.symmetry = false;
  if (problem.empty()) problem = difference("without symmetry", run, run_scenario(of_every_worker, one_run()));
  return problem.empty() ? problem_on_slower_gpus(scenario, run) : problem;
}

// What devices do by themselves takes no longer than the step. Nothing without a bound.
std::optional<std::string> problem_of_bound(const Scenario& scenario, const RunResult& run) {
  Scenario on_topology = scenario;
  on_topology.topology = run.topology;
  const Job job = job_of(on_topology);
  const std::optional<LoneWork> work = lone_work(job);
  if (!work) return std::nullopt;
  const auto step_s = static_cast<double>(run.report.summary.step_time.mean) * 1e-9;
  const double least_s = least_step_s(job, *work, LinkRates(*on_topology.topology));
  if (least_s <= 0) return std::nullopt;
  return least_s <= step_s * (1 + kRounding) ? "" : fmt::format("takes {} s, below its bound of {} s", step_s, least_s);
}

// A refusal is an answer; a deadlock of a strategy of ours is not.
template <typename Run>
std::string unless_refused(Run&& run) {
  try {
    return run();
  } catch (const Error& error) {
    std::string message = error.what();
    if (message.find("deadlock") != std::string::npos || message.find("every task waits") != std::string::npos) {
      return message;
    }
    throw;
  }
}

std::string problem_of_points(const SweepTable& table) {
  for (const SweptPoint& point : table.points) {
    if (point.state == PointState::lost || point.state == PointState::not_run) {
      return fmt::format("a point is {}: {}", name_of(point.state), point.problem);
    }
    if (point.state == PointState::done && (!(point.throughput > 0) || !std::isfinite(point.throughput))) {
      return fmt::format("a point has a throughput of {}", point.throughput);
    }
    if (point.state != PointState::done && point.problem.empty()) return "a point has neither a result nor a problem";
  }
  return {};
}

SweepTable swept(const Scenario& scenario, int processes) {
  SweepOptions options;
  options.processes = processes;
  SweepTable table = swept_points(scenario);
  run_sweep(scenario, options, table);
  return table;
}

}  // namespace

std::string problem_of_scenario(const std::string& text) {
  under_test = text;
  return unless_refused([&] {
    const Scenario scenario = parse_scenario(text, "/nowhere/drawn.yaml");
    const RunResult run = run_scenario(scenario, one_run());
    std::string problem = problem_of_times(run);
    if (problem.empty()) problem = problem_of_bound(scenario, run).value_or("");
    return problem.empty() ? problem_of_repetitions(scenario, run) : problem;
  });
}

std::string problem_of_point(const std::string& text) {
  under_test = text;
  return unless_refused([&] {
    const Scenario scenario = parse_scenario(text, "/nowhere/point.yaml");
    RunOptions options = one_run();
    options.only_report = options.has_all_memory = true;
    const std::optional<std::string> problem = problem_of_bound(scenario, run_scenario(scenario, options));
    if (!problem) throw Error("no bound");
    return *problem;
  });
}

std::string problem_of_collective(const DrawnCollective& drawn) {
  under_test = drawn.text();
  return unless_refused([&]() -> std::string {
    const auto times = [&] {
      std::string all;
      for (const CollectiveRow& row : run_collective(drawn.job, drawn.sweep).table.rows) {
        const double microseconds = row.time_us();
        const bool is_none = drawn.job.workers * drawn.job.devices == 1;
        if (!std::isfinite(microseconds) || microseconds < 0 || (microseconds == 0 && !is_none)) return std::string();
        all += fmt::format("{} ", microseconds);
      }
      return all + ".";
    };
    const std::string first = times();
    if (first.empty()) return "a time is not finite or 0";
    const std::string again = times();
    return first == again ? "" : fmt::format("again: {}, not {}", again, first);
  });
}

std::string problem_of_sweep(const std::string& text) {
  under_test = text;
  return unless_refused([&] {
    const Scenario scenario = parse_scenario(text, "/nowhere/drawn.yaml");
    const SweepTable table = swept(scenario, 1);
    std::string problem = problem_of_points(table);
    if (!problem.empty()) return problem;
    return sweep_csv(table) == sweep_csv(swept(scenario, 2)) ? std::string() : "two processes give another table";
  });
}

const std::string& job_under_test() {
  return under_test;
}

}  // namespace tandem::fuzz
