#include "cli/calibrate_from.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/base/exit_codes.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "reports/run/report_json.h"
#include "scenarios/fitting/calibration_report.h"
#include "scenarios/fitting/measurement_files.h"
#include "topologies/base/shown.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

Topology base_topology(const std::string& name) {
  return name.find_first_of("/.") == std::string::npos ? load_catalog_node(name) : *topology_from(name);
}

// Replaces times of the same collective on equal numbers of devices and machines by the measured ones.
void add_samples(Topology& topology, const std::vector<CollectiveSample>& samples) {
  std::vector<CollectiveSample> all = topology.facts().collectives;
  std::erase_if(all, [&](const CollectiveSample& old) {
    return std::any_of(samples.begin(), samples.end(), [&](const CollectiveSample& sample) {
      return sample.operation == old.operation && sample.devices == old.devices && sample.nodes == old.nodes;
    });
  });
  all.insert(all.end(), samples.begin(), samples.end());
  topology.facts().collectives = std::move(all);
}

void add_facts(Topology& topology, const std::vector<std::string>& files) {
  auto facts = topology.facts().measured_with;
  facts["calibrated_from"] = fmt::format("{}", fmt::join(files, ", "));
  topology.facts().measured_with = std::move(facts);
}

}  // namespace

int calibrate_from(const CommonOptions& common, const CalibrateFromFlags& flags) {
  const Output output(common);
  if (!flags.report.empty()) check_writable(flags.report);
  Topology topology = base_topology(flags.topology);
  const Measurements measured = read_measurements({flags.files.begin(), flags.files.end()});
  for (const std::string& disturbance : measured.disturbances) {
    std::cerr << "tandem: disturbed: " << shown(disturbance) << "\n";
  }
  CalibrationReport report;
  report.disturbances = measured.disturbances;
  report.collectives = calibrate_collectives(measured.collectives, topology, link_times_of(topology));
  for (const CollectiveTable& table : measured.collectives) {
    if (table.left_out.empty()) continue;
    report.collectives.notes.push_back(fmt::format("{}: the table of {} on {} devices is not whole, left out are {}",
                                                   table.file, table.operation, table.devices, table.left_out));
  }
  if (!measured.throughputs.empty()) {
    report.device = fit_device(topology, measured.throughputs);
    topology = report.device->topology;
  }
  add_samples(topology, report.collectives.samples);
  add_facts(topology, flags.files);
  if (!measured.disturbances.empty()) {
    topology.facts().set_disturbance(fmt::format("{}", fmt::join(measured.disturbances, "; ")));
  }
  std::ostringstream yaml;
  write_topology_yaml(topology, yaml);
  output.write_document(yaml.str());
  if (!flags.report.empty()) write_file(flags.report, json_text(calibration_to_json(report)));
  if (!common.quiet) std::cerr << shown_output(calibration_text(report)) << std::flush;
  return report.contradictions().empty() ? kOk : kNotMet;
}

}  // namespace tandem
