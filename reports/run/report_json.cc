#include "reports/run/report_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/course/course_json.h"
#include "reports/errors/known_errors.h"
#include "reports/run/evaluations_json.h"
#include "reports/run/memory_json.h"
#include "reports/run/model_work_json.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json band_to_json(const ErrorBand& band) {
  return {{"intervals", intervals_to_json(band.intervals)}, {"basis", band.basis}};
}

Json other_devices_to_json(const OtherDevices& others) {
  Json json = {{"busiest", others.busiest}, {"count", others.count}};
  json.update(per_step_to_json(others.per_step));
  return json;
}

Json machine_use_to_json(const MachineUse& use) {
  Json json = {{"disturbed", use.is_disturbed()},
               {"lost", use.lost()},
               {"cores", use.cores},
               {"time_ns", use.time},
               {"own_ns", use.own},
               {"waited_ns", use.waited},
               {"others_ns", use.others},
               {"stolen_ns", use.stolen},
               {"involuntary_switches", use.involuntary_switches},
               {"frequency_hz", use.frequency_hz}};
  for (const GpuUse& gpu : use.gpus) {
    json["gpus"].push_back({{"gpu", gpu.gpu},
                            {"readings", gpu.readings},
                            {"slowed", gpu.slowed},
                            {"slowed_by", gpu.slowed_by},
                            {"power_limited", gpu.power_limited},
                            {"other_programs", gpu.other_programs},
                            {"others_share", gpu.others_share}});
  }
  return json;
}

Json calibrated_to_json(const std::vector<CalibratedRange>& ranges) {
  Json list = Json::array();
  for (const CalibratedRange& range : ranges) {
    list.push_back({{"operation", range.operation},
                    {"devices", range.devices},
                    {"nodes", range.nodes},
                    {"from_bytes", range.from_bytes},
                    {"to_bytes", range.to_bytes},
                    {"from_ns", range.from},
                    {"to_ns", range.to}});
  }
  return list;
}

Json collectives_to_json(const std::vector<CollectiveSummary>& collectives) {
  Json list = Json::array();
  for (const CollectiveSummary& collective : collectives) {
    list.push_back({{"operation", collective.operation},
                    {"bytes", collective.bytes},
                    {"devices", collective.devices},
                    {"calls_per_step", collective.calls_per_step},
                    {"time_ns", collective.time_ns},
                    {"algbw", finite_or_null(collective.algbw)},
                    {"busbw", finite_or_null(collective.busbw)}});
    list.back()["waiting_ns"] = collective.waiting_ns;
    if (!collective.algorithm.empty()) list.back()["algorithm"] = collective.algorithm;
    for (const CallShare& share : collective.ranks) {
      list.back()["ranks"].push_back(
          {{"rank", share.rank}, {"waiting_ns", share.waiting}, {"transfer_ns", share.transfer}});
    }
  }
  return list;
}

Json ranks_to_json(const std::vector<RankWaiting>& ranks) {
  Json list = Json::array();
  for (const RankWaiting& rank : ranks) {
    list.push_back({{"device", rank.device},
                    {"devices", rank.devices},
                    {"waiting_ns", rank.waiting},
                    {"transfer_ns", rank.transfer},
                    {"caused_ns", rank.caused},
                    {"comes_last", rank.comes_last}});
  }
  return list;
}

bool any_waits(const Summary& summary) {
  return slowest_rank(summary.ranks) != nullptr || std::any_of(summary.collectives.begin(), summary.collectives.end(),
                                                               [](const auto& one) { return !one.ranks.empty(); });
}

Json critical_path_to_json(const CriticalPath& path) {
  return {{"step", path.step},
          {"compute", path.compute},
          {"update", path.update},
          {"input", path.input},
          {"communication", path.communication},
          {"other", path.other},
          {"idle", path.idle},
          {"begins_on", path.begins_on},
          {"ends_on", path.ends_on}};
}

// A disturbed run is not compared.
Json expectation_to_json(const Expectation& expectation, const Report& report) {
  const Nanoseconds measured = report.summary.step_time.mean;
  const bool compares = !report.is_disturbed();
  const std::optional<bool> normal = expectation.is_normal(measured);
  Json json = {{"topology", expectation.topology},
               {"step_time_ns", expectation.step_time},
               {"band", intervals_to_json(expectation.band.intervals)},
               {"basis", expectation.band.basis},
               {"gap", compares ? Json(expectation.gap_of(measured)) : Json()},
               {"normal", compares && normal ? Json(*normal) : Json()},
               {"largest_term", nullptr}};
  if (const auto& term = expectation.largest; term && compares)
    json["largest_term"] = {{"name", term->name}, {"time_ns", term->time}};
  return json;
}

Json classes_to_json(const std::vector<ReportedClass>& classes) {
  Json list = Json::array();
  for (const ReportedClass& one : classes) {
    list.push_back({{"representative", one.representative}, {"workers", one.workers}, {"devices", one.devices}});
  }
  return list;
}

template <typename Value>
Json map_to_json(const std::map<std::string, Value>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) {
    if constexpr (std::is_same_v<Value, double>) {
      object[key] = finite_or_null(value);
    } else {
      object[key] = value;
    }
  }
  return object;
}

}  // namespace

nlohmann::ordered_json long_steps_to_json(const LongSteps& steps) {
  Json json = {{"count", steps.count}, {"time_ns", steps.time}, {"others_ns", steps.others}};
  if (steps.every > 0) json["every"] = steps.every;
  return json;
}

nlohmann::ordered_json step_time_to_json(const StepTime& time) {
  Json json;
  if (time.has_mean) json["mean"] = time.mean;
  json.update(Json{{"median", time.median},
                   {"min", time.min},
                   {"p95", time.p95},
                   {"mad", time.median_absolute_deviation},
                   {"samples", time.samples}});
  if (time.long_steps) json["long_steps"] = long_steps_to_json(*time.long_steps);
  return json;
}

nlohmann::ordered_json per_step_to_json(const PerStep& per_step) {
  Json json = Json::object();
  for (const auto& [name, time] : step_figures()) json[name] = per_step.*time;
  return json;
}

nlohmann::ordered_json report_to_json(const Report& report) {
  Json json;
  json["schema_version"] = kReportSchemaVersion;
  json["kind"] = "report";
  json["tandem_version"] = report.tandem_version;
  json["scenario"] = report.scenario;
  json["scenario_hash"] = report.scenario_hash;
  json["engine"] = report.engine;
  json["deterministic"] = report.deterministic;
  json["topology"] = {{"name", report.topology}, {"provenance", report.topology_provenance}};
  if (!report.machine.empty()) json["machine"] = report.machine;
  if (!report.system.empty()) json["system"] = report.system;
  json["strategy"] = report.strategy;
  json["cross_device_ops"] = report.cross_device_ops;
  json["replicas"] = report.replicas;
  json["workers"] = report.workers;
  if (report.devices > 0) json["devices"] = report.devices;
  json["parameter_servers"] = report.parameter_servers;
  json["asynchronous"] = report.asynchronous;
  json["steps"] = report.steps;
  json["warmup_steps"] = report.warmup_steps;
  if (!report.has_parts()) json["records"] = name_of(report.records);
  if (!report.classes.empty()) json["symmetry"] = classes_to_json(report.classes);
  json["step_time_ns"] = step_time_to_json(report.summary.step_time);
  if (report.workers > 1) {
    json["worker_step_time_ns"] = json["worker_per_step_ns"] = Json::array();
    for (const WorkerSummary& worker : report.summary.workers) {
      json["worker_step_time_ns"].push_back(step_time_to_json(worker.step_time));
      if (report.has_parts()) json["worker_per_step_ns"].push_back(per_step_to_json(worker.per_step));
    }
  }
  json["throughput"] = {{"value", finite_or_null(report.throughput())},
                        {"unit", report.throughput_unit},
                        {"units_per_step", finite_or_null(report.units_per_step)}};
  if (report.has_parts()) json["per_step_ns"] = per_step_to_json(report.summary.per_step);
  if (report.summary.other_devices) json["other_devices_ns"] = other_devices_to_json(*report.summary.other_devices);
  if (report.summary.critical_path) json["critical_path_ns"] = critical_path_to_json(*report.summary.critical_path);
  if (report.expectation) json["expectation"] = expectation_to_json(*report.expectation, report);
  if (report.expected_error) json["expected_error"] = band_to_json(*report.expected_error);
  if (!report.faults.empty()) json["faults"] = report.faults;
  if (report.evaluations) json["evaluations"] = evaluations_to_json(*report.evaluations);
  if (report.course) json["job"] = course_to_json(*report.course);
  if (report.memory && report.memory_error) json["memory_expected_error"] = band_to_json(*report.memory_error);
  json["collectives"] = collectives_to_json(report.summary.collectives);
  if (!report.calibrated.empty()) json["calibrated"] = calibrated_to_json(report.calibrated);
  if (any_waits(report.summary)) json["ranks"] = ranks_to_json(report.summary.ranks);
  if (report.scaling_efficiency) json["scaling_efficiency"] = finite_or_null(*report.scaling_efficiency);
  json["loss"] = Json::array();
  for (const double loss : report.loss) json["loss"].push_back(finite_or_null(loss));
  json["metrics"] = map_to_json(report.metrics);
  json["settings"] = map_to_json(report.settings);
  if (!report.assumptions.empty()) json["assumptions"] = assumptions_to_json(report.assumptions);
  if (report.memory) json["memory_bytes"] = memory_to_json(*report.memory);
  add_work_and_price(json, report);
  if (report.cores) json["cores"] = {{"devices", report.cores->devices}, {"cores", report.cores->cores}};
  if (report.machine_use) json["machine_use"] = machine_use_to_json(*report.machine_use);
  if (report.counts) json["work_counts"] = map_to_json(*report.counts);
  if (report.op_time > 0) json["op_time_ns"] = report.op_time;
  json["notes"] = report.notes;
  return json;
}

nlohmann::ordered_json document_of(std::string_view kind) {
  return {{"schema_version", kReportSchemaVersion}, {"kind", kind}, {"tandem_version", version()}};
}

std::string json_text(const nlohmann::ordered_json& document) {
  return shown_text(document.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace tandem
