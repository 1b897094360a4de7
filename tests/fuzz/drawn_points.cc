#include "tests/fuzz/drawn_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tandem::fuzz {
namespace {

constexpr int kMostStages = 12;  // of longer pipelines, a step has too many records

// One setting of many, left out where the draw says so.
void maybe(Draws& draw, std::size_t one_of, std::string& settings, const std::string& more) {
  if (draw.one_in(one_of)) settings += ", " + more;
}

struct PointMachines {
  std::string topology{};
  int workers = 1, per_worker = 1;
  bool is_hopper = false;  // has fp8
  int devices() const { return workers * per_worker; }
};

std::string drawn_levels(Draws& draw) {
  return draw.word({"switch", "{kind: fat_tree, workers_per_leaf: 1, leaves_per_pod: 2}", "rail",
                    "{kind: fat_tree, workers_per_leaf: 2, leaves_per_pod: 1, oversubscription: 4}",
                    "{kind: fat_tree, workers_per_leaf: 1, leaves_per_pod: 2, core_oversubscription: 8}",
                    "{kind: fat_tree, rails: true, workers_per_leaf: 2, leaves_per_pod: 8, spines: 2}",
                    "{kind: leaf_spine, workers_per_leaf: 2, spines: 2, oversubscription: 2}",
                    "{kind: dragonfly, workers_per_leaf: 1, leaves_per_pod: 2, spines: 2}",
                    "{kind: switch, transport: socket, hop_latency: 30us}"});
}

// Another machine, or link, than the others.
std::string drawn_overrides(Draws& draw) {
  if (!draw.one_in(6)) return "";
  return ", overrides: " +
         draw.word({"{network: {bandwidth: 5GB/s}}", "{network: {latency: 50us}}",
                    "{w0.gpu0: {memory_bandwidth: 500GB/s}}", "{w1.gpu0: {memory_bandwidth: 500GB/s}}",
                    "{\"w0.gpu*\": {memory_bandwidth: 500GB/s}}", "{\"w0.nic*\": {bandwidth: 5GB/s}}",
                    "{\"w1.nic*\": {bandwidth: 5GB/s}}"});
}

PointMachines drawn_machines(Draws& draw) {
  struct Kind {
    const char* name;
    int devices;
    bool is_hopper;
  };
  const Kind kind = draw.of<Kind>({{"hgx-h100", 8, true},
                                   {"dgx-a100", 8, false},
                                   {"gb200-nvl72", 4, true},
                                   {"pcie-8gpu", 8, false},
                                   {"dgx1-v100", 8, false},
                                   {"mi300x-8gpu", 8, false},
                                   {"gh200", 1, true},
                                   {"hgx-b200", 8, true},
                                   {"l40s-8gpu", 8, false}});
  PointMachines machines{.workers = draw.of({1, 2, 4, 2, 3, 8}), .per_worker = 1, .is_hopper = kind.is_hopper};
  machines.per_worker = std::min(kind.devices, draw.of({2, 8, 4, 1, 3, 4}));
  const std::string fabric = drawn_levels(draw), overrides = drawn_overrides(draw);
  machines.topology = machines.workers == 1 ? std::string(kind.name)
                                            : fmt::format("{{cluster: {{node: {}, workers: {}, fabric: {}{}}}}}",
                                                          kind.name, machines.workers, fabric, overrides);
  return machines;
}

// How devices share the work of a step.
struct PointStrategy {
  std::string text{};
  std::string servers{};  // keys of the scenario's `devices`
  int stages = 1, passes = 1, tensor = 1, context = 1, experts = 1;
  bool has_gathers = false, is_mesh = false;
  bool divides_model = false;
};

int drawn_divisor(Draws& draw, int number, std::initializer_list<int> sizes) {
  const int size = draw.of(sizes);
  return number % size == 0 ? size : 1;
}

void draw_schedule(Draws& draw, PointStrategy& strategy, int pipeline) {
  strategy.stages = pipeline;
  if (pipeline == 1) return;
  if (draw.one_in(4)) {
    strategy.text += ", virtual_stages: 2";
    strategy.stages *= 2;
    strategy.passes = (strategy.passes + pipeline - 1) / pipeline * pipeline;
  } else if (draw.one_in(3)) {
    const std::string order = draw.word({"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"});
    strategy.text += ", schedule: " + order;
    if (order.starts_with("dualpipe")) strategy.passes = std::max(strategy.passes, 2 * pipeline);
    if (order.ends_with("v")) strategy.stages *= 2;
  }
  maybe(draw, 4, strategy.text, "stage_blocks: balanced");
}

PointStrategy drawn_point_mesh(Draws& draw, int devices) {
  PointStrategy strategy{.text = "name: mesh", .passes = draw.of({1, 2, 4, 8, 3}), .is_mesh = true};
  strategy.divides_model = true;
  const int pipeline = drawn_divisor(draw, devices, {1, 2, 4, 2, 3});
  strategy.tensor = drawn_divisor(draw, devices / pipeline, {1, 2, 4, 8, 1});
  strategy.context = drawn_divisor(draw, devices / pipeline / strategy.tensor, {1, 1, 2, 4});
  const int data = devices / pipeline / strategy.tensor / strategy.context;
  draw_schedule(draw, strategy, pipeline);
  strategy.text += fmt::format(", data: {}, tensor: {}, pipeline: {}, context: {}, micro_batches: {}", data,
                               strategy.tensor, pipeline, strategy.context, strategy.passes);
  if (strategy.context > 1) strategy.text += ", context_exchange: " + draw.word({"all_gather", "ring", "all_to_all"});
  strategy.experts = std::gcd(data * strategy.context, draw.of({1, 2, 4, 8}));
  if (strategy.experts > 1) {
    strategy.text += fmt::format(", expert: {}", strategy.experts);
    maybe(draw, 4, strategy.text, "overlap_experts: true");
  }
  if (strategy.tensor > 1) maybe(draw, 4, strategy.text, "expert_tensor: 1");
  if (draw.one_in(3)) {
    strategy.has_gathers = true;
    strategy.text += draw.word({", distributed_optimizer: true", ", distributed_optimizer: true, overlap_gather: true",
                                ", shard_parameters: true"});
    if (data % 2 == 0) maybe(draw, 4, strategy.text, "replicate: 2");
  }
  maybe(draw, 6, strategy.text, "scatter_gather: false");
  return strategy;
}

PointStrategy drawn_point_strategy(Draws& draw, const PointMachines& machines) {
  std::string name = draw.word({"mesh", "mesh", "mesh", "fully_sharded", "multi_worker_mirrored", "parameter_server",
                                "tensor_parallel", "pipeline_parallel", "mirrored", "central_storage"});
  const bool is_too_long = name == "pipeline_parallel" && machines.devices() > kMostStages;
  if (name == "mesh" || is_too_long) return drawn_point_mesh(draw, machines.devices());
  if (machines.workers > 1 && (name == "mirrored" || name == "central_storage")) name = "multi_worker_mirrored";
  PointStrategy strategy{.text = "name: " + name};
  strategy.divides_model = name == "tensor_parallel" || name == "pipeline_parallel";
  if (name == "mirrored") {
    strategy.text +=
        ", cross_device_ops: " + draw.word({"auto", "nccl", "hierarchical_copy", "reduction_to_one_device"});
  } else if (name == "parameter_server" && machines.workers > 1) {
    strategy.text += ", placement: " + draw.word({"round_robin", "by_size", "by_hash"});
    strategy.servers = ", ps: " + draw.word({"1", "2", "3"});
  } else if (name == "pipeline_parallel") {
    strategy.passes = draw.of({1, 2, 4, 8});
    draw_schedule(draw, strategy, machines.devices());
    strategy.text += fmt::format(", micro_batches: {}", strategy.passes);
  }
  return strategy;
}

std::string drawn_point_model(Draws& draw, const PointStrategy& strategy) {
  const std::string model = strategy.divides_model
                                ? draw.word({"gpt", "llama", "mixtral", "gpt"})
                                : draw.word({"gpt", "llama", "mixtral", "resnet32", "layers_small", "bert_base"});
  const int of_stage = draw.of({1, 2, 3}), layers = strategy.stages * (strategy.stages > kMostStages ? 1 : of_stage);
  const std::string of_all = fmt::format("layers: {}, hidden: {}, heads: 8, tokens: {}, vocabulary: 1024", layers,
                                         draw.word({"512", "1024", "256"}), draw.word({"128", "1024", "64"}));
  if (model == "gpt") return fmt::format("model: gpt, sizes: {{{}}}", of_all);
  const std::string of_llama = fmt::format("{}, key_heads: 8, intermediate: {}", of_all, draw.word({"512", "2048"}));
  if (model == "llama") return fmt::format("model: llama, sizes: {{{}}}", of_llama);
  if (model == "mixtral") return fmt::format("model: mixtral, sizes: {{{}, experts: 8, used: 2}}", of_llama);
  return "model: " + model;
}

std::string drawn_training(Draws& draw, const PointStrategy& strategy, bool has_fp8) {
  std::string text = ", optimizer: " + draw.word({"adam", "sgd", "momentum", "lamb"});
  if (has_fp8 && draw.one_in(4)) {
    text += ", dtype: bf16, precision: {compute: fp8";
    if (strategy.has_gathers) maybe(draw, 2, text, "gather: fp8");
    text += "}";
  } else {
    text += ", dtype: " + draw.word({"bf16", "f16", "f32", "tf32"});
  }
  if (draw.one_in(4)) text += draw.word({", parameter_dtype: f32", ", bucket_bytes: 100KB", ", variables: tensors"});
  maybe(draw, 8, text, "overlap: false");
  maybe(draw, 4, text,
        draw.word({"activation_checkpointing: true", "activation_checkpointing: {modules: [core_attn]}",
                   "activation_checkpointing: {every: 2}", "activation_checkpointing: {first: 1}"}));
  if (strategy.tensor > 1) maybe(draw, 2, text, "sequence_parallel: true");
  if (strategy.tensor > 1) maybe(draw, 4, text, draw.word({"overlap_tensor: false", "overlap_products: true"}));
  if (!strategy.divides_model) maybe(draw, 4, text, "gradient_accumulation_steps: 2");
  maybe(draw, 3, text,
        "stack: {" +
            draw.word({"fusion: none", "fusion: compiled, loss: fused", "accumulation: in_products", "attention: flash",
                       "attention: separate", "experts: separate"}) +
            "}");
  if (strategy.experts > 1)
    maybe(draw, 3, text,
          "experts: {" + draw.word({"imbalance: {zipf: 0.5}", "dispatch: deepep", "capacity: 1.2"}) + "}");
  if (strategy.is_mesh) maybe(draw, 8, text, "offload: {" + draw.word({"optimizer: 0.5", "activations: 1"}) + "}");
  return text;
}

std::string drawn_point_workload(Draws& draw, const PointStrategy& strategy, bool has_fp8) {
  if (!strategy.is_mesh && draw.one_in(4)) {
    std::string hidden = draw.word({"64", "1024", "16", "4096"});
    for (int i = 1; i < 2 * strategy.stages; ++i) hidden += ", " + draw.word({"64", "256"});
    return fmt::format("kind: mlp, hidden: [{}], momentum: {}", hidden, draw.word({"0", "0.9"}));
  }
  return fmt::format("kind: layers, {}{}", drawn_point_model(draw, strategy), drawn_training(draw, strategy, has_fp8));
}

}  // namespace

std::string drawn_point(Draws& draw) {
  const PointMachines machines = drawn_machines(draw);
  const PointStrategy strategy = drawn_point_strategy(draw, machines);
  const std::string workload = drawn_point_workload(draw, strategy, machines.is_hopper);
  const int all = machines.devices() * strategy.passes;
  const int batch = strategy.divides_model ? all * draw.of({1, 2}) : draw.of({all, 2 * all, 4 * all, all + 1, 7});
  const std::string spread = draw.one_in(6) ? ", spread: " + draw.word({"0", "0.1", "0.5"}) : "";
  const std::string engine = draw.one_in(8) ? draw.word({", graphs: true", ", collectives: message"}) : "";
  return fmt::format(
      "schema_version: 1\nname: point\nworkload: {{{}, batch: {}{}}}\nstrategy: {{{}}}\nengine: {{name: sim{}}}\n"
      "topology: {}\ndevices: {{type: gpu, workers: {}, per_worker: {}{}}}\nsteps: 2\nwarmup_steps: 1\n",
      workload, batch, spread, strategy.text, engine, machines.topology, machines.workers, machines.per_worker,
      strategy.servers);
}

}  // namespace tandem::fuzz
