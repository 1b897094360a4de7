#include "reports/nccl_tests/nccl_tests_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/errors/known_errors.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// nccl-tests' figures: two decimals, fewer where they would not fit into `width`.
std::string figure_text(double value, int width) {
  int digits = 0;
  double power = 1;
  while (value >= power) {
    ++digits;
    power *= 10;
  }
  const int decimals = digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0;
  return fmt::format("{:>{}.{}f}", value, width, decimals);
}

struct Bandwidths {
  double algbw = 0;
  double busbw = 0;
};

// A size that was rounded down to nothing takes no time, and has the bandwidth that nccl-tests prints for it: 0.
Bandwidths bandwidths_of(const CollectiveTable& table, const CollectiveRow& row, double time_us) {
  if (!(time_us > 0)) return {};
  const double algbw = static_cast<double>(row.bytes) / time_us / 1e3;
  return {algbw, algbw * bus_factor(table.operation, table.devices).value_or(1)};
}

std::string group_text(const CollectiveTable& table, const CollectiveRow& row, std::optional<double> time_us) {
  if (!time_us) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "N/A", "N/A", "N/A", "N/A");
  const Bandwidths bandwidths = bandwidths_of(table, row, *time_us);
  return fmt::format("  {}  {}  {}  {:>5}", figure_text(*time_us, 7), figure_text(bandwidths.algbw, 6),
                     figure_text(bandwidths.busbw, 6), row.wrong ? fmt::to_string(*row.wrong) : "N/A");
}

double average_busbw(const CollectiveTable& table) {
  double sum = 0;
  int count = 0;
  for (const CollectiveRow& row : table.rows) {
    for (const auto& time_us : {row.out_of_place_us, row.in_place_us}) {
      if (!time_us) continue;
      sum += bandwidths_of(table, row, *time_us).busbw;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

std::int64_t wrong_elements(const CollectiveTable& table) {
  std::int64_t wrong = 0;
  for (const CollectiveRow& row : table.rows) wrong += row.wrong.value_or(0);
  return wrong;
}

std::optional<double> error_against(const CollectiveRow& row, const std::optional<Against>& against) {
  if (!against) return {};
  const auto found = against->time_us.find(row.bytes);
  if (found == against->time_us.end()) return {};
  return row.time_us() / found->second - 1;
}

std::vector<double> absolute_errors(const CollectiveTable& table, const std::optional<Against>& against) {
  std::vector<double> errors;
  for (const CollectiveRow& row : table.rows) {
    if (const auto error = error_against(row, against)) errors.push_back(std::abs(*error));
  }
  return errors;
}

int process_of(const CollectiveRun& run, std::size_t rank) {
  const auto worker = static_cast<int>(rank) / std::max(1, run.devices_per_worker);
  return run.one_process_a_device ? static_cast<int>(rank) : worker;
}

std::string announcement_text(const CollectiveRun& run, const CollectiveTable& table) {
  std::string text = fmt::format("# Collective test starting: {}_perf\n", table.operation);
  text += fmt::format(
      "# nThread 1 nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: 1 "
      "validation: {} graph: 0\n",
      run.one_process_a_device ? 1 : run.devices_per_worker, run.least_bytes, run.most_bytes,
      run.step_factor > 1 ? fmt::format("{}", run.step_factor) : fmt::to_string(run.step_bytes),
      run.step_factor > 1 ? "factor" : "bytes", run.warmup, run.iterations, run.checks_values ? 1 : 0);
  text += fmt::format("# engine {}{}\n", run.engine, run.topology.empty() ? "" : ", " + shown(run.topology));
  for (const auto& [name, value] : run.settings) text += fmt::format("# {}: {}\n", shown(name), shown(value));
  text += "#\n# Using devices\n";
  for (std::size_t rank = 0; rank < run.devices.size(); ++rank) {
    const RankDevice& device = run.devices[rank];
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [{}] {}\n", rank, process_of(run, rank),
                        shown(device.host), device.index, shown(device.name), shown(run.device_model));
  }
  return text + "#\n";
}

std::string heading_text(bool with_algorithms, bool with_errors) {
  std::string names =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
      "algbw   busbw #wrong";
  std::string units =
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
      "(GB/s)  (GB/s)       ";
  if (with_errors || with_algorithms) {
    names += "  |";
    units += "  |";
  }
  if (with_errors) {
    names += "   against     error";
    units += "      (us)          ";
  }
  if (with_algorithms) names += "  algorithm";
  return "#                                                              out-of-place                       "
         "in-place\n" +
         names + "\n" + units + "\n";
}

std::string more_text(const CollectiveRow& row, const std::optional<Against>& against, bool with_algorithms) {
  if (!against && !with_algorithms) return "";
  std::string text = "  |";
  if (against) {
    const auto found = against->time_us.find(row.bytes);
    const auto error = error_against(row, against);
    text += fmt::format("   {:>7}  {:>8}", found == against->time_us.end() ? "-" : figure_text(found->second, 7),
                        error ? error_text(*error) : "-");
  }
  if (with_algorithms) text += "  " + row.algorithm;
  return text;
}

std::string row_text(const CollectiveTable& table, const CollectiveRow& row) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}{}{}", row.bytes, row.count, table.dtype, table.redop, table.root,
                     group_text(table, row, row.out_of_place_us), group_text(table, row, row.in_place_us));
}

Json group_json(const CollectiveTable& table, const CollectiveRow& row, std::optional<double> time_us) {
  if (!time_us) return nullptr;
  const Bandwidths bandwidths = bandwidths_of(table, row, *time_us);
  Json group;
  group["time"] = *time_us;
  group["alg_bw"] = bandwidths.algbw;
  group["bus_bw"] = bandwidths.busbw;
  group["nwrong"] = row.wrong ? Json(*row.wrong) : Json(nullptr);
  return group;
}

Json config_json(const CollectiveRun& run) {
  Json config;
  config["nthreads"] = 1;
  config["ngpus"] = run.one_process_a_device ? 1 : run.devices_per_worker;
  config["minimum_bytes"] = run.least_bytes;
  config["maximum_bytes"] = run.most_bytes;
  if (run.step_factor > 1) {
    config["step_factor"] = run.step_factor;
  } else {
    config["step_bytes"] = run.step_bytes;
  }
  config["warmup_iters"] = run.warmup;
  config["iterations"] = run.iterations;
  config["aggregated_iterations"] = 1;
  config["validation"] = run.checks_values ? 1 : 0;
  config["graph"] = 0;
  config["devices"] = Json::array();
  int last_process = -1;
  for (std::size_t rank = 0; rank < run.devices.size(); ++rank) {
    if (process_of(run, rank) == last_process) continue;  // only each process's first device, as in nccl-tests
    last_process = process_of(run, rank);
    const RankDevice& device = run.devices[rank];
    config["devices"].push_back({{"rank", rank},
                                 {"group", 0},
                                 {"pid", last_process},
                                 {"hostname", device.host},
                                 {"device", device.index},
                                 {"device_hex", device.name},
                                 {"device_info", run.device_model}});
  }
  return config;
}

Json result_json(const CollectiveRun& run, const CollectiveTable& table, const CollectiveRow& row,
                 const std::optional<Against>& against) {
  Json result;
  result["size"] = row.bytes;
  result["count"] = row.count;
  result["type"] = table.dtype;
  result["redop"] = table.redop;
  result["root"] = fmt::format("{:6}", table.root);
  result["out_of_place"] = group_json(table, row, row.out_of_place_us);
  result["in_place"] = group_json(table, row, row.in_place_us);
  result["actual_iterations"] = run.iterations;
  result["experiment_name"] = table.operation + "_perf";
  if (!row.algorithm.empty()) result["algorithm"] = row.algorithm;
  if (const auto error = error_against(row, against)) {
    result["against"] = {{"time", against->time_us.at(row.bytes)}, {"error", *error}};
  }
  return result;
}

// Returns a line: what a figure is, may be, and what that changes where it changes most.
std::string assumption_text(const CollectiveAssumption& one) {
  const auto most = std::ranges::max_element(one.times, {}, &CollectiveAssumption::Times::effect);
  std::string text =
      fmt::format("# Assumed              : {} {}, may be {} .. {}", one.figure, one.value, one.from, one.to);
  if (most == one.times.end()) return text + "\n";
  const auto change_to = [&](double us) { return error_text(us / most->us - 1); };
  return text + fmt::format(": {} then take {:.4g} .. {:.4g} us ({} .. {})\n", size_text(most->bytes), most->from_us,
                            most->to_us, change_to(most->from_us), change_to(most->to_us));
}

Json assumption_json(const CollectiveAssumption& one) {
  Json json{{"figure", one.figure}, {"value", one.value}, {"source", one.source}, {"from", one.from}, {"to", one.to}};
  for (const auto& times : one.times)
    json["times"].push_back({{"size", times.bytes}, {"from", times.from_us}, {"to", times.to_us}});
  return json;
}

}  // namespace

Against::Against(const CollectiveTable& table) : file(table.file) {
  for (const CollectiveRow& row : table.rows) time_us.emplace(row.bytes, row.time_us());
}

std::string nccl_tests_text(const CollectiveRun& run, const CollectiveTable& table,
                            const std::optional<Against>& against) {
  const bool with_algorithms = std::any_of(table.rows.begin(), table.rows.end(),
                                           [](const CollectiveRow& row) { return !row.algorithm.empty(); });
  std::string text = announcement_text(run, table);
  if (against) text += "# against: " + against->file + "\n#\n";
  text += heading_text(with_algorithms, against.has_value());
  for (const CollectiveRow& row : table.rows) {
    text += row_text(table, row) + more_text(row, against, with_algorithms) + "\n";
  }
  const std::int64_t wrong = wrong_elements(table);
  text += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  text += fmt::format("# Avg bus bandwidth    : {:.6g}\n", average_busbw(table));
  if (const auto errors = absolute_errors(table, against); !errors.empty()) {
    text += fmt::format("# Error against        : median {}, p95 {} of {} sizes\n", percent_text(median_of(errors)),
                        percent_text(p95_of(errors)), errors.size());
  }
  for (const SizesError& one : run.expected_errors) {
    text += fmt::format("# Expected, {:>9}  : {}; {}\n", one.sizes, band_text(one.band), band_basis_text(one.band));
  }
  for (const CollectiveAssumption& one : run.assumptions) text += assumption_text(one);
  for (const std::string& note : run.notes) text += "# note: " + note + "\n";
  return text + fmt::format("# Collective test concluded: {}_perf\n", table.operation);
}

nlohmann::ordered_json nccl_tests_json(const CollectiveRun& run, const CollectiveTable& table,
                                       const std::optional<Against>& against) {
  Json document;
  document["version"] = 3;
  document["args"] = {table.operation + "_perf"};
  document["env"] = Json::array();
  document["nccl_version"] = nullptr;
  document["engine"] = run.engine;
  document["topology"] = run.topology;
  document["settings"] = run.settings;
  document["config"] = config_json(run);
  document["results"] = Json::array();
  for (const CollectiveRow& row : table.rows) document["results"].push_back(result_json(run, table, row, against));
  const std::int64_t wrong = wrong_elements(table);
  document["out_of_bounds"] = {{"count", wrong}, {"okay", wrong == 0 ? "true" : "false"}};
  document["average_bus_bandwidth"] = {{"bandwidth", average_busbw(table)}, {"okay", "unchecked"}};
  if (const auto errors = absolute_errors(table, against); !errors.empty()) {
    document["against"] = {{"file", against->file},
                           {"median_error", median_of(errors)},
                           {"p95_error", p95_of(errors)},
                           {"sizes", errors.size()}};
  }
  for (const SizesError& one : run.expected_errors) {
    document["expected_error"].push_back(
        {{"sizes", one.sizes}, {"intervals", intervals_to_json(one.band.intervals)}, {"basis", one.band.basis}});
  }
  for (const CollectiveAssumption& one : run.assumptions) document["assumptions"].push_back(assumption_json(one));
  document["notes"] = run.notes;
  return document;
}

}  // namespace tandem
