#include "tests/fuzz/targets.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/base/json_document.h"
#include "reports/blame/blame.h"
#include "reports/checks/history.h"
#include "reports/nccl_tests/nccl_tests_reader.h"
#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "reports/stored_text.h"
#include "scenarios/import/import.h"
#include "scenarios/import/megatron.h"
#include "scenarios/import/models/hugging_face.h"
#include "scenarios/import/models/model_table.h"
#include "scenarios/import/traces/chakra.h"
#include "scenarios/import/traces/kineto.h"
#include "scenarios/import/traces/op_table.h"
#include "scenarios/measurements/measurement_file.h"
#include "scenarios/scenario/scenario.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/running_targets.h"
#include "topologies/readers/astra_network.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/graph_files.h"
#include "topologies/readers/hwloc_topology.h"
#include "topologies/readers/nccl/nccl_xml.h"
#include "topologies/readers/nvidia_smi.h"
#include "topologies/readers/simgrid_platform.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/topology_text.h"

namespace tandem::fuzz {
namespace {

const std::string kName = "fuzzed";

ImportOptions with_gpu() {
  ImportOptions options;
  options.gpu = "h100";
  return options;
}

// What is read is looked at, too, while that takes no time.
void look_at(const Topology& topology) {
  constexpr std::size_t kFew = 48;
  if (topology.node_count() > kFew) return;
  topology_text(topology);
  check_topology(topology);
}

template <ImportedTopology (*Import)(std::string_view, const std::string&, const ImportOptions&)>
void read_with_gpu(std::string_view bytes) {
  look_at(Import(bytes, kName, with_gpu()).topology);
}

template <FabricDescription (*Parse)(std::string_view, const std::string&)>
void read_fabric_text(std::string_view bytes) {
  const FabricDescription fabric = Parse(bytes, kName);
  constexpr std::size_t kFewHosts = 8;
  if (fabric.hosts.size() > kFewHosts) return;
  ImportOptions options;
  options.complete_with = "aws-g4dn";
  look_at(import_fabric(fabric, kName, options).topology);
}

void read_any_topology(std::string_view bytes) {
  if (!is_own_topology(bytes)) look_at(import_text(bytes, kName, with_gpu()).topology);
}

void read_own_topology(std::string_view bytes) {
  look_at(parse_topology_yaml(bytes, "/nowhere/fuzzed.yaml"));
}

void read_nccl(std::string_view bytes) {
  look_at(import_nccl_xml(bytes, kName, {}).topology);
  look_at(import_nccl_xml(bytes, kName, with_gpu()).topology);
}

void read_hugging_face_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  constexpr std::int64_t kTokens = 128;
  table_of(read_hugging_face(read_json(file.path()), kName, kTokens).spec).yaml();
}

void read_megatron_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  table_of(read_megatron(read_flags(file.path())).spec).yaml();
}

void read_any_import(std::string_view bytes) {
  const MemoryFile file(bytes);
  import_file(file.path(), {}, "");
}

void read_kineto_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_kineto(file.path());
}

// A job of few ops is replayed, too.
void read_op_table_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  RecordedJob job = pipeline_job(read_op_table(file.path()), kName, {});
  constexpr std::size_t kFewOps = 200;
  if (job.ops.size() <= kFewOps) blame(std::move(job));
}

ChakraGroups some_groups() {
  return {{"0", {0, 1}}, {"1", {0, 2}}};
}

void read_chakra_binary(std::string_view bytes) {
  const MemoryFile file(bytes);
  make_chakra_trace(read_chakra_messages(file.path()), kName, some_groups(), 4);
}

void read_chakra_text(std::string_view bytes) {
  const MemoryFile file(bytes);
  make_chakra_trace(read_chakra_json(file.path()), kName, {}, 4);
}

void read_groups(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_chakra_groups(file.path());
}

void read_scenario(std::string_view bytes) {
  parse_scenario(bytes, "/nowhere/fuzzed.yaml");
}

void read_log(std::string_view bytes) {
  CollectiveTable stated;
  stated.devices = 8;
  read_nccl_tests(bytes, kName, stated);
}

void read_measurements_file(std::string_view bytes) {
  validation::parse_measurements(bytes, kName);
}

// A document of --json.
void read_result(std::string_view bytes) {
  const JsonOrigin origin(kName, bytes);
  const nlohmann::ordered_json document = origin.parse();
  stored_text(document, origin);
  if (document["kind"] != "exploration") page_of(document, origin);
}

void read_history_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_history(file.path());
}

const std::array kTargets{
    Target{"nccl_xml", read_nccl, {"tests/topologies/samples/nccl", "tests/bad_input/files/nccl"}},
    Target{"nvidia_smi",
           read_with_gpu<import_nvidia_smi>,
           {"tests/topologies/samples/made/nvidia_smi.txt", "tests/bad_input/files/smi"}},
    Target{"hwloc",
           read_with_gpu<import_hwloc>,
           {"tests/topologies/samples/made/hwloc.xml", "tests/bad_input/files/hwloc"}},
    Target{"ibnetdiscover",
           read_fabric_text<parse_ibnetdiscover>,
           {"tests/topologies/samples/made/ibnetdiscover.txt", "tests/bad_input/files/ib"}},
    Target{"slurm_conf",
           read_fabric_text<parse_slurm_conf>,
           {"tests/topologies/samples/made/topology.conf", "tests/bad_input/files/slurm"}},
    Target{"slurm_yaml",
           read_fabric_text<parse_slurm_yaml>,
           {"tests/topologies/samples/made/slurm_topology.yaml", "tests/bad_input/files/slurm"}},
    Target{"graphml", read_with_gpu<import_graphml>, {"tests/bad_input/files/graph"}},
    Target{"dot", read_with_gpu<import_dot>, {"tests/bad_input/files/graph"}},
    Target{"simgrid",
           read_with_gpu<import_simgrid_platform>,
           {"tests/topologies/samples/made/simgrid_star.xml", "tests/bad_input/files/simgrid"}},
    Target{"astra_network",
           read_with_gpu<import_astra_network>,
           {"tests/topologies/samples/made/astra_network.yml", "tests/bad_input/files/astra"}},
    Target{"any_topology", read_any_topology, {"tests/topologies/samples/made"}},
    Target{"topology_yaml", read_own_topology, {"topologies/catalog/dgx1-v100.yaml", "tests/topologies/broken"}},
    Target{"scenario", read_scenario, {"tests/scenarios/broken", "scenarios/examples"}},
    Target{"hugging_face", read_hugging_face_file, {"docs/examples/config.json", "tests/bad_input/files/hf"}},
    Target{"megatron", read_megatron_file, {"docs/examples/train.sh", "tests/bad_input/files/megatron"}},
    Target{"any_import", read_any_import, {"docs/examples/config.json", "docs/examples/trace.json"}},
    Target{"kineto", read_kineto_file, {"docs/examples/trace.json", "tests/bad_input/files/kineto"}},
    Target{"op_table", read_op_table_file, {"tests/bad_input/files/ops"}},
    Target{"chakra_messages", read_chakra_binary, {"tests/bad_input/files/chakra"}},
    Target{"chakra_json", read_chakra_text, {"docs/examples/job.0.json", "tests/bad_input/files/chakra"}},
    Target{"chakra_groups", read_groups, {"tests/bad_input/files/chakra"}},
    Target{"nccl_tests", read_log, {"tests/reports/nccl_tests", "tests/bad_input/files/logs"}},
    Target{"measurements",
           read_measurements_file,
           {"tests/scenarios/broken_measurements", "tests/bad_input/files/measurements"}},
    Target{"result", read_result, {"tests/golden", "tests/bad_input/files/reports"}},
    Target{"history", read_history_file, {}},
    Target{"run_drawn_scenario", run_drawn_scenario},
    Target{"run_drawn_collective", run_drawn_collective},
    Target{"run_drawn_sweep", run_drawn_sweep},
    Target{"run_scenario", run_scenario_text, {"tests/scenarios/broken"}},
    Target{"run_topology", run_topology_text, {"tests/topologies/samples/made", "tests/topologies/broken"}},
    Target{"run_trace", run_trace_file, {"docs/examples/trace.json", "tests/bad_input/files/kineto"}},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

const Target* find_target(std::string_view name) {
  const auto found =
      std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& one) { return one.name == name; });
  return found == kTargets.end() ? nullptr : &*found;
}

}  // namespace tandem::fuzz
