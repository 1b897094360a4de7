#include "tests/fuzz/drawn_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/measurements/published_tables.h"

namespace tandem::fuzz {
namespace {

// A machine of the catalog.
struct Node {
  const char* name = "";
  int devices = 0;
  bool has_gpus = true;
};

Node drawn_node(Draws& draw) {
  return draw.of<Node>({{"hgx-h100", 8},
                        {"cpu-host", 8, false},
                        {"dgx-a100", 8},
                        {"dgx1-v100", 8},
                        {"pcie-8gpu", 8},
                        {"gb200-nvl72", 4},
                        {"gh200", 1},
                        {"mi300x-8gpu", 8},
                        {"l40s-8gpu", 8},
                        {"hgx-b200", 8}});
}

std::string drawn_fabric(Draws& draw) {
  return draw.word({"switch", "fat_tree", "rail", "{kind: leaf_spine, workers_per_leaf: 2, spines: 2}",
                    "{kind: fat_tree, workers_per_leaf: 1, leaves_per_pod: 2, oversubscription: 2}",
                    "{kind: switch, transport: socket, hop_latency: 30us}"});
}

// The devices that take part.
struct Place {
  Node node{};
  int workers = 1;
  int per_worker = 1;
  std::string fabric{};
  int devices() const { return workers * per_worker; }

  std::string topology() const {
    if (workers == 1) return node.name;
    return fmt::format("{{cluster: {{node: {}, workers: {}, fabric: {}}}}}", node.name, workers, fabric);
  }
};

Place drawn_place(Draws& draw) {
  Place place;
  place.node = drawn_node(draw);
  place.workers = draw.of({1, 1, 2, 3, 4, 6, 8});
  place.per_worker = std::min(place.node.devices, draw.of({1, 2, 3, 4, 8}));
  place.fabric = drawn_fabric(draw);
  return place;
}

// How the job's devices share the work.
struct Sharing {
  std::string strategy{};
  std::string more_devices{};  // keys of the scenario's `devices`
  int stages = 1;              // of a pipeline
  int passes = 1;              // micro-batches
  bool divides_layers = false;
};

Sharing drawn_mesh(Draws& draw, int devices) {
  Sharing sharing{.strategy = "name: mesh", .passes = draw.of({1, 2, 4, 8}), .divides_layers = true};
  for (const char* axis : {"tensor", "pipeline", "context"}) {
    const int size = draw.of({1, 1, 2, 4, 3});
    if (devices % size != 0 || size == 1) continue;
    sharing.strategy += fmt::format(", {}: {}", axis, size);
    if (std::string_view(axis) == "pipeline") sharing.stages = size;
    if (std::string_view(axis) == "context" && draw.one_in(2)) {
      sharing.strategy += ", context_exchange: " + draw.word({"ring", "all_to_all"});
    }
    devices /= size;
  }
  sharing.strategy += fmt::format(", data: {}, micro_batches: {}", devices, sharing.passes);
  if (draw.one_in(3)) sharing.strategy += ", axis_order: tensor_pipeline_data";
  if (draw.one_in(6)) sharing.strategy += ", virtual_stages: 2";
  if (draw.one_in(3)) {
    sharing.strategy +=
        ", schedule: " + draw.word({"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"});
  }
  if (draw.one_in(6)) sharing.strategy += ", distributed_optimizer: true";
  return sharing;
}

Sharing drawn_replicas(Draws& draw, const std::string& name) {
  Sharing sharing{.strategy = "name: " + name};
  if (name == "mirrored") {
    sharing.strategy +=
        ", cross_device_ops: " + draw.word({"auto", "nccl", "hierarchical_copy", "reduction_to_one_device"});
  } else if (name == "parameter_server") {
    sharing.strategy += ", placement: " + draw.word({"round_robin", "by_size", "by_hash"});
    if (draw.one_in(2)) sharing.more_devices += ", ps: " + draw.word({"1", "2", "3"});
    if (draw.one_in(4)) sharing.more_devices += ", chief: true";
  }
  return sharing;
}

// Strategies for one worker, for one device, and for any.
Sharing drawn_sharing(Draws& draw, const Place& place) {
  if (place.workers == 1 && draw.one_in(3)) return drawn_replicas(draw, draw.word({"mirrored", "central_storage"}));
  if (place.devices() == 1 && draw.one_in(3)) return drawn_replicas(draw, "one_device");
  const std::string name = draw.word(
      {"multi_worker_mirrored", "parameter_server", "fully_sharded", "mesh", "tensor_parallel", "pipeline_parallel"});
  if (name == "mesh") return drawn_mesh(draw, place.devices());
  Sharing sharing = drawn_replicas(draw, name);
  sharing.divides_layers = name == "tensor_parallel" || name == "pipeline_parallel";
  if (name != "pipeline_parallel") return sharing;
  sharing.stages = place.devices();
  sharing.passes = draw.of({1, 2, 4});
  sharing.strategy += fmt::format(", micro_batches: {}", sharing.passes);
  return sharing;
}

std::string drawn_perceptron(Draws& draw, const Sharing& sharing) {
  std::string hidden;
  const std::size_t layers = 1 + draw.index(3);
  if (!sharing.divides_layers) {
    for (std::size_t i = 0; i < layers; ++i) {
      hidden += (hidden.empty() ? "" : ", ") + draw.word({"8", "1", "16", "64", "128"});
    }
  } else {
    hidden = "64";
    for (int i = 1; i < 2 * sharing.stages; ++i) hidden += ", 64";
  }
  return fmt::format("kind: mlp, hidden: [{}], momentum: {}", hidden, draw.word({"0", "0.9"}));
}

std::string drawn_layers(Draws& draw, const Sharing& sharing, bool has_gpus) {
  const std::string model =
      sharing.divides_layers ? "gpt"
                             : draw.word({"layers_small", "gpt", "resnet32", "bert_base", "gnmt", "transformer_big"});
  std::string text = fmt::format("kind: layers, model: {}", model);
  if (model == "gpt") {
    text += fmt::format(", sizes: {{hidden: {}, heads: 8, layers: {}}}", draw.word({"256", "512"}),
                        sharing.stages * draw.of({1, 2}));
  }
  text += ", dtype: " + (has_gpus ? draw.word({"f32", "bf16", "f16", "tf32"}) : "f32");
  text += ", optimizer: " + draw.word({"sgd", "momentum", "adam", "lamb"});
  if (draw.one_in(6)) text += draw.word({", bucket_bytes: 100KB", ", variables: tensors"});
  if (!sharing.divides_layers && draw.one_in(6)) text += ", gradient_accumulation_steps: 2";
  for (const char* more : {"overlap: false", "activation_checkpointing: true", "sequence_parallel: true"}) {
    if (draw.one_in(8)) text += std::string(", ") + more;
  }
  return text;
}

std::string drawn_engine(Draws& draw, bool may_have_values) {
  std::string text = "name: sim";
  if (draw.one_in(6)) text += ", collectives: message";
  if (draw.one_in(6)) text += ", graphs: true";
  if (draw.one_in(6)) text += ", records: " + draw.word({"collectives", "steps"});
  if (may_have_values && draw.one_in(3)) text += ", values: real";
  return text;
}

// A batch that leaves replicas without rows, gives them unequal parts, or the same to all.
int drawn_batch(Draws& draw, const Sharing& sharing, int devices) {
  const int all = devices * sharing.passes;
  if (sharing.passes > 1) return draw.of({all, 2 * all, all + 1, all - 1});
  return draw.of({all, 1, 2, 3, 5, 7, 12, 31, 64, 2 * all, all + 1, std::max(1, all - 1)});
}

std::string drawn_job(Draws& draw, const Place& place) {
  const Sharing sharing = drawn_sharing(draw, place);
  const bool is_perceptron = !draw.one_in(2);
  const std::string model =
      is_perceptron ? drawn_perceptron(draw, sharing) : drawn_layers(draw, sharing, place.node.has_gpus);
  const std::string spread = draw.one_in(6) ? ", spread: 0.1" : "";
  const int steps = draw.of({1, 2, 3});
  return fmt::format(
      "schema_version: 1\nname: drawn\nworkload: {{{}, batch: {}{}}}\nstrategy: {{{}}}\nengine: {{{}}}\n"
      "topology: {}\ndevices: {{type: {}, per_worker: {}{}{}}}\nsteps: {}\nwarmup_steps: {}\n",
      model, drawn_batch(draw, sharing, place.devices()), spread, sharing.strategy, drawn_engine(draw, is_perceptron),
      place.topology(), place.node.has_gpus ? "gpu" : "cpu", place.per_worker,
      place.workers > 1 ? fmt::format(", workers: {}", place.workers) : "", sharing.more_devices, steps,
      draw.of({0, steps - 1}));
}

}  // namespace

std::string drawn_scenario(Draws& draw) {
  return drawn_job(draw, drawn_place(draw));
}

std::string drawn_sweep(Draws& draw) {
  std::string fields =
      "    workload.batch: " + draw.word({"[1, 3, 8, 64]", "{from: 1, to: 9, step: 4}", "{from: 1, to: 8, times: 2}"});
  fields += "\n    " + draw.word({"devices.per_worker: [1, 2, 3]", "workload.hidden: [[8], [64, 64]]",
                                  "strategy.name: [mirrored, multi_worker_mirrored, central_storage, mesh]",
                                  "workload.momentum: [0, 0.9]", "steps: [1, 2]", "engine.symmetry: ['off', auto]",
                                  "topology: [hgx-h100, dgx-a100, {cluster: {node: hgx-b200, workers: 2}}]"});
  const std::string where =
      draw.word({"", "  where: [batch % replicas == 0]\n", "  where: [batch <= 4]\n", "  where: [batch > 99]\n"});
  return fmt::format(
      "schema_version: 1\nname: drawn\nworkload: {{kind: mlp, hidden: [16], batch: 4}}\nstrategy: {{name: {}}}\n"
      "engine: {{name: sim}}\ntopology: {}\ndevices: {{type: gpu, per_worker: {}}}\nsteps: 2\nwarmup_steps: 0\n"
      "sweep:\n  values:\n{}\n{}",
      draw.word({"multi_worker_mirrored", "mirrored", "parameter_server", "fully_sharded"}),
      draw.word({"hgx-h100", "dgx1-v100", "pcie-8gpu"}), draw.word({"1", "2", "4"}), fields, where);
}

DrawnCollective drawn_collective(Draws& draw) {
  using enum CollectiveKind;
  DrawnCollective drawn;
  const Place place = drawn_place(draw);
  drawn.node = place.node.name;
  CollectiveJob& job = drawn.job;
  job.engine = model_engine().name;
  job.workers = place.workers;
  job.devices = place.per_worker;
  job.device_type = place.node.has_gpus ? DeviceType::gpu : DeviceType::cpu;
  job.topology = machine_of(place.node.name, place.workers);
  if (draw.one_in(3)) job.collectives = CollectiveFidelity::message;
  if (draw.one_in(4)) job.nccl["NCCL_ALGO"] = draw.word({"Ring", "Tree", "NVLS"});
  if (draw.one_in(4)) job.nccl["NCCL_PROTO"] = draw.word({"Simple", "LL", "LL128"});
  CollectiveSweep& sweep = drawn.sweep;
  sweep.kind = draw.of({all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, send_receive});
  if (place.devices() == 1 && sweep.kind == send_receive) sweep.kind = all_reduce;
  sweep.dtype = draw.of({DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64});
  sweep.reduction = draw.of({Reduction::sum, Reduction::maximum, Reduction::minimum});
  sweep.root = has_root(sweep.kind) && draw.one_in(2) ? place.devices() - 1 : 0;
  sweep.sizes = {draw.of<std::int64_t>({1024, 1, 8, 4'100, 1'000'003, 1 << 28})};
  sweep.warmup = draw.of({0, 1});
  sweep.iterations = draw.of({1, 2, 3});
  return drawn;
}

std::string DrawnCollective::text() const {
  std::string command;
  for (const auto& [name, value] : job.nccl) command += fmt::format("{}={} ", name, value);
  command += fmt::format("tandem collectives {} --topology {} --workers {} -g {} -b {} -e {} -n {} -d {} -r {}",
                         name_of(sweep.kind), node, job.workers, job.devices, sweep.sizes.front(), sweep.sizes.front(),
                         sweep.iterations, name_of(sweep.dtype), sweep.root);
  return command + (job.collectives ? " --collectives message" : "");
}

}  // namespace tandem::fuzz
