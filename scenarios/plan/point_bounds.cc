#include "scenarios/plan/point_bounds.h"

#include <fmt/format.h>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/plan/pass_fields.h"
#include "scenarios/plan/step_bound.h"
#include "scenarios/plan/trace_bound.h"
#include "scenarios/reading/scenario_rules.h"
#include "scenarios/run/run_facts.h"
#include "scenarios/sweep/point_runner.h"

namespace tandem {
namespace {

constexpr double kSecondsOfAnHour = 3600;

}  // namespace

PointBounds::Seen PointBounds::see(const SweepSpace::Point& choice) {
  Seen seen{.point = {.values = {}, .state = PointState::failed}};
  SweptPoint& point = seen.point;
  try {
    Scenario scenario = space_.scenario(choice, parts_);
    Diagnostics problems;
    check_rules(scenario, problems);
    problems.throw_if_any();
    if (!scenario.topology) scenario.topology = topology_;
    const Job job = job_of(scenario);
    point.strategy = scenario.strategy.name;
    point.devices = static_cast<int>(job.devices);
    point.memory = memory_need(job);
    seen.planned.units = scenario.workload.batch;
    if (const auto power = power_of(job)) seen.planned.power_w = power->of_machine_w * power->machines;
    if (const auto price = price_of(job))
      seen.planned.price_per_s = price->per_hour * price->machines / kSecondsOfAnHour;
    // Runs are not refused for a need slightly above the memory, but such a point is nothing to recommend.
    if (point.memory && !point.memory->is_within()) {
      point.state = PointState::does_not_fit;
      point.problem = memory_text(*point.memory);
      point.limit = "memory";
      return seen;
    }
    point.state = PointState::not_run;
    seen.planned.least_step_s = least_step_s(job, choice);
  } catch (const InputError& error) {
    point.problem = text_of_problems(error);
  } catch (const Error& error) {
    point.problem = error.what();
  }
  return seen;
}

double PointBounds::least_step_s(const Job& job, const SweepSpace::Point& point) {
  if (job.trace != nullptr) {
    const auto [known, is_new] = of_traces_.try_emplace(job.trace->ranks);
    if (is_new) known->second = least_trace_step_s(*job.trace->ranks);
    return known->second;
  }
  const std::string key = key_of(job, point);
  auto known = work_.find(key);
  if (known == work_.end()) known = work_.emplace(key, lone_work(job)).first;
  if (!known->second) return 0;
  const auto rates = rates_.try_emplace(job.scenario.topology, *job.scenario.topology).first;
  return tandem::least_step_s(job, *known->second, rates->second);
}

std::string PointBounds::key_of(const Job& job, const SweepSpace::Point& point) const {
  const bool has_stages = tandem::has_stages(job);
  const int devices = has_stages ? job.mesh->tensor * job.mesh->context : 1;
  std::string key =
      fmt::format("{} examples; {} devices, {} in a step", examples_of_pass(job), devices, job.devices_in_step);
  for (const auto& [field, value] : space_.values(point)) {
    if (decides_passes(field, has_stages)) key += fmt::format("; {}={}", field, value);
  }
  return key;
}

}  // namespace tandem
