// Every key of the JSON Schema, in scenarios of every kind: another value changes the results, is refused, or is named
// in a note, and what is named changes nothing.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/reading/scenario_schema.h"
#include "tests/scenarios/silent_keys.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Adds the keys of an object's description, with those of the objects in it: "devices.type".
void add_keys(const Json& schema, const Json& description, const std::string& path, std::set<std::string>& keys) {
  if (description.contains("$ref")) {
    const std::string name = description["$ref"].get<std::string>().substr(std::string("#/definitions/").size());
    return add_keys(schema, schema["definitions"][name], path, keys);
  }
  for (const char* choice : {"anyOf", "oneOf"}) {
    if (!description.contains(choice)) continue;
    for (const Json& one : description[choice]) add_keys(schema, one, path, keys);
  }
  if (!description.contains("properties")) return;
  for (const auto& [key, value] : description["properties"].items()) {
    const std::string below = path.empty() ? key : path + "." + key;
    keys.insert(below);
    add_keys(schema, value, below, keys);
  }
}

std::set<std::string> keys_of_schema() {
  const Json schema = Json::parse(scenario_schema());
  std::set<std::string> keys;
  add_keys(schema, schema, "", keys);
  for (const char* kind : {"mlp", "layers", "trace"}) {
    add_keys(schema, schema["definitions"][kind], "workload", keys);
  }
  return keys;
}

struct Values {
  std::vector<std::string> others{};
  std::string why_never{};  // why no run can show a change: the reason for the reader of this test
};

// Other values for every key. Those that are refused in one scenario are accepted in another.
const std::map<std::string, Values>& other_values() {  // NOLINT(readability-function-size): a table
  const std::string is_map = "its keys have rows of their own";
  static const std::map<std::string, Values> kValues{
      {"schema_version", {{}, "there is only one version"}},
      {"name", {{"other"}}},
      {"faults", {{"[{slow: {worker: 0, factor: 3}}]", "[{fail: {worker: 0, at: 1us}}]"}}},
      {"evaluation", {{"{every: 3 steps, steps: 2}"}}},
      {"evaluation.every", {{"2 steps", "50 steps"}}},
      {"evaluation.steps", {{"2"}}},
      {"evaluation.batch", {{"36"}}},
      {"evaluation.on", {{"evaluator"}}},
      {"recovery", {{}, is_map}},
      {"recovery.policy", {{"restart_all", "wait", "end"}}},
      {"recovery.detection", {{"30s"}}},
      {"recovery.restart", {{"3min"}}},
      {"recovery.spares", {{"2"}}},
      {"recovery.checkpoint", {{}, is_map}},
      {"recovery.checkpoint.every", {{"2 steps"}}},
      {"recovery.checkpoint.time", {{"2s"}}},
      {"recovery.checkpoint.overlapped", {{"true"}}},
      {"recovery.checkpoint.directory", {{"saved"}}},
      {"recovery.checkpoint.load", {{"20s"}}},
      {"description", {{}, "a text for human readers"}},
      {"assumed", {{}, "notes of the report"}},
      {"left_out", {{}, "notes of the report"}},
      {"steps", {{"4"}}},
      {"warmup_steps", {{"0"}}},
      {"workload", {{}, is_map}},
      {"workload.kind", {{"mlp", "layers"}}},
      {"workload.batch", {{"36"}}},
      {"workload.spread", {{"0.5"}}},
      {"workload.data", {{"files/rows.csv"}}},
      {"workload.hidden", {{"[24]"}}},
      {"workload.learning_rate", {{"0.01"}}},
      {"workload.momentum", {{"0.5"}}},
      {"workload.seed", {{"7"}}},
      {"workload.model", {{"layers_small"}}},
      {"workload.sizes", {{"{tokens: 16}", "{width: 8}"}}},
      {"workload.stack", {{}, is_map}},
      {"workload.stack.layout", {{"nhwc"}}},
      {"workload.stack.fusion", {{"none", "persistent", "in_convolutions"}}},
      {"workload.stack.attention", {{"flash"}}},
      {"workload.stack.accumulation", {{"in_products"}}},
      {"workload.stack.loss", {{"fused"}}},
      {"workload.stack.experts", {{"separate", "fused"}}},
      {"workload.stack.block_host_time", {{"1ms"}}},
      {"workload.dtype", {{"f32", "f64"}}},
      {"workload.parameter_dtype", {{"f64"}}},
      {"workload.precision", {{}, is_map}},
      {"workload.precision.compute", {{"fp8", "nvfp4"}}},
      {"workload.precision.recipe", {{"blockwise"}}},  // hosts are slower here than what others add to kernels
      {"workload.precision.gather", {{"fp8"}}},
      {"workload.precision.moments", {{"bf16"}}},
      {"workload.precision.moments.first", {{"bf16"}}},
      {"workload.precision.moments.second", {{"fp8"}}},
      {"workload.experts", {{}, is_map}},
      {"workload.experts.dispatch", {{"deepep", "hybridep"}}},
      {"workload.experts.capacity", {{"1.5"}}},
      {"workload.experts.imbalance", {{}, is_map}},
      {"workload.experts.imbalance.zipf", {{"1"}}},
      {"workload.experts.imbalance.counts", {{"[1, 2, 3, 4, 5, 6, 7, 8]"}}},
      {"workload.experts.dispatch_dtype", {{"fp8"}}},
      {"workload.experts.groups", {{}, is_map}},
      {"workload.experts.groups.of", {{"8"}}},
      {"workload.experts.groups.used", {{"1"}}},
      {"workload.lora", {{}, is_map}},
      {"workload.lora.rank", {{"8"}}},
      {"workload.lora.layers", {{"[attention_output]"}}},
      {"workload.sequences", {{}, is_map}},
      {"workload.sequences.lengths", {{"[4, 4]"}}},
      {"workload.optimizer", {{"lamb"}}},
      {"workload.bucket_bytes", {{"4kB", "200"}}},
      {"workload.overlap", {{"false"}}},
      {"workload.overlap_tensor", {{"false"}}},
      {"workload.sequence_parallel", {{"true"}}},
      {"workload.overlap_products", {{"true"}}},
      {"workload.offload", {{}, is_map}},
      {"workload.offload.activations", {{"1"}}},
      {"workload.offload.optimizer", {{"0.5"}}},
      {"workload.gradient_accumulation_steps", {{"2"}}},
      {"workload.activation_checkpointing", {{"true", "operations"}}},
      {"strategy.schedule", {{"zero_bubble"}}},
      {"strategy.overlap_experts", {{"true"}}},
      {"strategy.overlap_shared_expert", {{"true"}}},
      {"strategy.shard_parameters", {{"true"}}},
      {"strategy.replicate", {{"2"}}},
      {"workload.activation_checkpointing.first", {{"1"}}},
      {"workload.activation_checkpointing.every", {{"2"}}},
      {"workload.activation_checkpointing.together", {{"2"}}},
      {"workload.activation_checkpointing.modules", {{"[core_attn]", "[mlp]"}}},
      {"workload.activation_checkpointing.layers", {{"[context]", "[output]"}}},
      {"workload.variables", {{"tensors"}}},
      {"workload.epoch", {{"1000"}}},
      {"workload.values", {{"real"}}},
      {"workload.dropout", {{"0.5"}}},
      {"workload.files", {{"[../../../docs/examples/trace.json, ../../../docs/examples/trace.json]"}}},
      {"workload.ranks", {{"4", "16"}}},
      {"workload.replicas", {{"16"}}},
      {"strategy", {{}, is_map}},
      {"strategy.name", {{"one_device", "mirrored", "multi_worker_mirrored", "fully_sharded"}}},
      {"strategy.placement", {{"by_size", "by_hash"}}},
      {"strategy.updates", {{"sync"}}},
      {"strategy.cross_device_ops", {{"hierarchical_copy", "reduction_to_one_device"}}},
      {"strategy.num_packs", {{"0", "3"}}},
      {"strategy.stage_blocks", {{"[1, 3]"}}},
      {"strategy.bytes_per_pack", {{"1kB"}}},
      {"strategy.micro_batches", {{"2", "4"}}},
      {"strategy.virtual_stages", {{"2"}}},
      {"strategy.scatter_gather", {{"false"}}},
      {"strategy.distributed_optimizer", {{"true"}}},
      {"strategy.overlap_gather", {{"true"}}},
      {"strategy.data", {{"2"}}},
      {"strategy.tensor", {{"4"}}},
      {"strategy.pipeline", {{"4"}}},
      {"strategy.context", {{"2"}}},
      {"strategy.context_exchange", {{"ring", "all_to_all"}}},
      {"strategy.axis_order", {{"tensor_pipeline_data"}}},
      {"strategy.expert", {{"2"}}},
      {"strategy.expert_tensor", {{"1"}}},
      {"engine", {{}, is_map}},
      {"engine.name", {{}, "another engine is another world: its own tests compare the two"}},
      {"engine.values", {{"real"}}},
      {"engine.collectives", {{"message"}}},
      {"engine.nccl",
       {{"{NCCL_ALGO: Tree}", "{NCCL_ALGO: Ring}", "{NCCL_PROTO: LL}", "{NCCL_MAX_NCHANNELS: 1}",
         "{devices_per_process: 8}", "{NCCL_NVLS_ENABLE: 0}", "{NCCL_COLLNET_ENABLE: 1}"}}},
      {"engine.symmetry", {{}, "it decides how much is simulated, and changes no result: symmetry_test.cc"}},
      {"engine.steady_state", {{}, "it decides how much is simulated, and changes no result: steady_state_test.cc"}},
      {"engine.graphs", {{"true"}}},
      {"engine.records", {{"collectives", "steps"}}},
      {"devices", {{}, is_map}},
      {"devices.type", {{"cpu"}}},
      {"devices.per_worker", {{"1", "3"}}},
      {"devices.workers", {{"1"}}},
      {"devices.chief", {{"true"}}},
      {"devices.reserved", {{}, is_map}},
      {"devices.reserved.bytes", {{"1GB"}}},
      {"devices.reserved.share", {{"0.05"}}},
      {"devices.ps", {{"2"}}},
      {"topology", {{"dgx-a100"}}},
      {"topology.schema_version", {{}, "there is only one version"}},
      {"topology.name", {{"other"}}},
      {"topology.power", {{"9kW"}}},
      {"topology.price", {{"98 $/h"}}},
      {"topology.cluster", {{}, is_map}},
      {"topology.cluster.node", {{"dgx-a100"}}},
      {"topology.cluster.workers", {{"3"}}},
      {"topology.cluster.fabric", {{"fat_tree", "torus"}}},
      {"topology.cluster.fabric.kind", {{"dragonfly"}}},
      {"topology.cluster.hosts", {{"[a, b]"}}},
      {"topology.cluster.gpu", {{"H200"}}},
      {"topology.cluster.complete_with", {{"dgx-a100"}}},
      {"topology.cluster.nvlink_domain", {{"2", "1"}}},  // no machine here has one
      {"topology.cluster.overrides", {{"{gpu: {memory_bandwidth: 100GB/s}}"}}},
      {"expect", {{}, is_map}},
      {"expect.min_test_accuracy", {{}, "the command compares it with the report"}},
      {"expect.max_final_loss", {{}, "the command compares it with the report"}},
      {"expect.max_step_time", {{}, "the command compares it with the report"}},
      {"expect.min_throughput", {{}, "the command compares it with the report"}},
      {"expect.max_exposed_communication", {{}, "the command compares it with the report"}},
      {"sweep", {{"{values: {steps: [4]}}"}}},
      {"sweep.values", {{}, "a sweep has tests of its own"}},
      {"sweep.where", {{}, "a sweep has tests of its own"}},
  };
  return kValues;
}

// Keys that no scenario below may change the results by, whatever it is: they are refused or named in a note.
bool is_never_changing(const std::string& key) {
  static const std::set<std::string> kKeys{"devices.chief",
                                           "recovery.checkpoint.directory",  // real runs save there
                                           "sweep",
                                           "topology.cluster.hosts",
                                           "topology.cluster.gpu",
                                           "topology.cluster.nvlink_domain",
                                           "topology.cluster.complete_with",
                                           "topology.cluster.fabric",
                                           "topology.cluster.fabric.kind",
                                           "workload.kind",
                                           "workload.files",
                                           "workload.ranks",
                                           "workload.replicas",
                                           "workload.dropout",  // is for layers that are computed, and none are
                                           "strategy.data",
                                           "strategy.context",
                                           "strategy.tensor",
                                           "strategy.pipeline"};
  return kKeys.contains(key);
}

const std::string kTwoNodes = "topology: {cluster: {node: hgx-h100, workers: 2}}\n";
const std::string kMlp = "workload: {kind: mlp, hidden: [32, 16], batch: 72}\n";
const std::string kTable =
    "workload: {kind: layers, model: files/forms.yaml, batch: 72, dtype: bf16, bucket_bytes: 100}\n";
const std::string kGpt =
    "workload: {kind: layers, model: gpt, sizes: {tokens: 32, hidden: 64, heads: 4, layers: 4, vocabulary: 512}, "
    "batch: 72, dtype: bf16, bucket_bytes: 64kB}\n";
const std::string kTrace = "workload: {kind: trace, files: [../../../docs/examples/trace.json]}\n";

std::string scenario(const std::string& workload, const std::string& strategy, const std::string& topology,
                     const std::string& devices, const std::string& engine = "name: sim") {
  return fmt::format(
      "name: base\n{}strategy: {{{}}}\n{}devices: {{type: gpu, {}}}\nengine: {{{}}}\nsteps: 3\nwarmup_steps: 1\n",
      workload, strategy, topology, devices, engine);
}

// Adds keys to a workload.
std::string with(const std::string& workload, const std::string& keys) {
  return workload.substr(0, workload.rfind('}')) + ", " + keys + "}\n";
}

// Scenarios of every family of strategies and every kind of workload.
std::map<std::string, std::string> scenarios() {
  const std::string real = "name: sim, values: real", cpu = "topology: {cluster: {node: cpu-host, workers: 4}}\n";
  std::map<std::string, std::string> all{
      {"one mlp with values", scenario(kMlp, "name: one_device", kTwoNodes, "workers: 1, per_worker: 1", real)},
      {"mlp on four workers", scenario(kMlp, "name: multi_worker_mirrored",
                                       "topology: {cluster: {node: hgx-h100, workers: 4}}\n", "per_worker: 1")},
      {"gpt on processors",
       "name: base\n" + std::string(kGpt).replace(kGpt.find("bf16"), 4, "f32") +
           "strategy: {name: multi_worker_mirrored}\n" + cpu +
           "devices: {type: cpu, per_worker: 2}\nengine: {name: sim}\nsteps: 3\nwarmup_steps: 1\n"},
      {"table in one bucket", scenario(kTable.substr(0, kTable.find(", bucket")) + "}\n", "name: multi_worker_mirrored",
                                       kTwoNodes, "per_worker: 2")},
      {"gpt at a price",
       scenario(kGpt, "name: multi_worker_mirrored",
                "topology: {cluster: {node: hgx-h100, workers: 2}, price: 49 $/h}\n", "per_worker: 2")},
      {"two servers", scenario(kTable.substr(0, kTable.find(", bucket")) + ", variables: tensors}\n",
                               "name: parameter_server", kTwoNodes, "per_worker: 1, ps: 2")},
      {"trace", scenario(kTrace, "name: multi_worker_mirrored", kTwoNodes, "workers: 1, per_worker: 8")},
      {"mesh of data and tensor", scenario(kGpt, "name: mesh, data: 2, tensor: 2", kTwoNodes, "per_worker: 2")},
      {"mesh of data with divided state",
       scenario(kGpt, "name: mesh, data: 4, distributed_optimizer: true", kTwoNodes, "per_worker: 2")},
      {"mesh of data whose optimizer has a state",
       scenario(std::string(kGpt).replace(kGpt.find("dtype: bf16"), 11, "dtype: bf16, optimizer: adam"),
                "name: mesh, data: 4", kTwoNodes, "per_worker: 2")},
      {"quantised mesh of data with divided state",
       scenario(std::string(kGpt).replace(kGpt.find("dtype: bf16"), 11, "dtype: bf16, precision: {compute: fp8}"),
                "name: mesh, data: 4, distributed_optimizer: true", kTwoNodes, "per_worker: 2")},
      {"mesh that divides experts",
       scenario("workload: {kind: layers, model: files/routed_experts.yaml, batch: 72, dtype: bf16}\n",
                "name: mesh, data: 4, expert: 4, micro_batches: 2", kTwoNodes, "per_worker: 2")},
      {"mesh that divides experts beside a shared one",
       scenario("workload: {kind: layers, model: files/shared_expert.yaml, batch: 72, dtype: bf16}\n",
                "name: mesh, data: 4, expert: 4", kTwoNodes, "per_worker: 2")},
      {"mesh that divides experts and rows",
       scenario("workload: {kind: layers, model: files/routed_experts.yaml, batch: 72, dtype: bf16, sequence_parallel: "
                "true}\n",
                "name: mesh, data: 2, tensor: 2, expert: 2", kTwoNodes, "per_worker: 2")},
      {"mesh that sends rows to experts once",
       scenario("workload: {kind: layers, model: files/routed_experts.yaml, batch: 72, dtype: bf16, "
                "experts: {dispatch: deepep, groups: {of: 4, used: 2}}}\n",
                "name: mesh, data: 4, expert: 4", kTwoNodes, "per_worker: 2")},
      {"mesh that divides sequences", scenario(kGpt, "name: mesh, data: 2, context: 2", kTwoNodes, "per_worker: 2")},
      {"adapters", scenario(with(kGpt, "lora: {rank: 4, layers: [query_key_value]}"), "name: multi_worker_mirrored",
                            kTwoNodes, "per_worker: 2")},
      {"packed sequences", scenario(with(kGpt, "stack: {attention: flash}, sequences: {lengths: [32, 16, 16]}"),
                                    "name: multi_worker_mirrored", kTwoNodes, "per_worker: 2")},
      {"mesh of tensor and pipeline",
       scenario(kGpt, "name: mesh, tensor: 2, pipeline: 2, micro_batches: 2", kTwoNodes, "per_worker: 2")},
      {"mesh of data and pipeline",
       scenario(kGpt, "name: mesh, data: 2, pipeline: 2, micro_batches: 2", kTwoNodes, "per_worker: 2")},
      {"lost worker", scenario(kTable, "name: multi_worker_mirrored", kTwoNodes, "per_worker: 2") +
                          "faults: [{fail: {worker: 1, at: 0.1ms, back_after: 1s}}]\n"
                          "recovery: {policy: restart_all, detection: 1s, checkpoint: {every: 1 steps, time: 1s}}\n"},
      {"lost worker with spares",
       scenario(kTable, "name: multi_worker_mirrored", kTwoNodes, "per_worker: 2") +
           "faults: [{fail: {worker: 1, at: 0.1ms, back_after: 1s}}]\nrecovery: {policy: spare}\n"},
      {"mlp that evaluates", scenario(kMlp, "name: mirrored", kTwoNodes, "workers: 1, per_worker: 2", real) +
                                 "evaluation: {every: 1 steps, steps: 1, batch: 8}\n"},
      {"gpt that evaluates", scenario(kGpt, "name: multi_worker_mirrored", kTwoNodes, "workers: 1, per_worker: 2") +
                                 "evaluation: {every: 1 steps, steps: 1}\n"},
      {"mesh that evaluates",
       scenario(kGpt, "name: mesh, tensor: 2, pipeline: 2, micro_batches: 2", kTwoNodes, "per_worker: 2") +
           "evaluation: {every: 1 steps, steps: 1}\n"},
      {"mlp mesh of tensor and pipeline",
       scenario("workload: {kind: mlp, hidden: [32, 32, 32], batch: 72}\n",
                "name: mesh, tensor: 2, pipeline: 2, micro_batches: 2", kTwoNodes, "per_worker: 2")},
  };
  for (const auto& named : {std::pair{"mlp", kMlp}, {"table", kTable}, {"gpt", kGpt}}) {
    const auto add = [&](const char* strategy, const std::string& topology, const char* devices) {
      all[fmt::format("{} {}", strategy, named.first)] =
          scenario(named.second, std::string("name: ") + strategy, topology, devices);
    };
    add("one_device", kTwoNodes, "workers: 1, per_worker: 1");
    add("mirrored", kTwoNodes, "workers: 1, per_worker: 2");
    add("multi_worker_mirrored", kTwoNodes, "per_worker: 2");
    add("central_storage", kTwoNodes, "workers: 1, per_worker: 2");
    add("parameter_server", kTwoNodes, "per_worker: 2");
    add("fully_sharded", kTwoNodes, "per_worker: 2");
    add("tensor_parallel", kTwoNodes, "workers: 1, per_worker: 2");
    add("pipeline_parallel", kTwoNodes, "workers: 1, per_worker: 2");
  }
  return all;
}

TEST(SilentKeys, EveryKeyOfTheSchemaHasARow) {
  std::set<std::string> rows;
  for (const auto& [key, values] : other_values()) {
    rows.insert(key);
    EXPECT_NE(values.others.empty(), values.why_never.empty()) << key;
  }
  EXPECT_EQ(keys_of_schema(), rows);
}

TEST(SilentKeys, NoKeyOfAScenarioIsSilentlyUnused) {
  Scenarios runs;
  std::set<std::string> changing;
  for (const auto& [name, text] : scenarios()) {
    const Answer before = runs.run(text);
    if (before.is_refused && name.find("parallel") != std::string::npos) continue;  // not every model can be divided
    ASSERT_FALSE(before.is_refused) << name << ": " << before.refusal;
    EXPECT_EQ(runs.run(text).results, before.results) << name << " is not repeatable";
    for (const auto& [key, values] : other_values()) {
      for (const std::string& value : values.others) {
        if (Scenarios::has(text, key, value)) continue;
        const Effect effect = runs.effect(text, before, key, value);
        // A call that has all links to itself takes the time of the plan with both fidelities;
        // docs/fidelity/message.md.
        if (effect == Effect::silent && key == "engine.collectives") continue;
        EXPECT_NE(effect, Effect::silent) << name << ": " << key << ": " << value << " changes nothing";
        if (key == "devices.chief") continue;  // the results have the names of tasks in them
        EXPECT_NE(effect, Effect::wrong) << name << ": " << key << ": " << value << " is said to change nothing";
        if (effect == Effect::changed) changing.insert(key);
      }
    }
  }
  for (const auto& [key, values] : other_values()) {
    if (values.others.empty()) continue;
    EXPECT_NE(changing.contains(key), is_never_changing(key)) << key;
  }
}

}  // namespace
}  // namespace tandem
