#include "scenarios/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/choices.h"
#include "scenarios/import/configuration_scenario.h"
#include "scenarios/import/given_keys.h"
#include "scenarios/import/megatron.h"
#include "scenarios/import/megatron_adapters.h"
#include "scenarios/import/mesh_sizes.h"
#include "scenarios/import/titan/torchtitan.h"
#include "scenarios/import/titan_scenario.h"
#include "scenarios/import/traces/trace.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

void add_facts(const HuggingFaceModel& model, const ModelTable& table, Imported& imported) {
  const auto fact = [&](std::string text) { imported.facts.push_back(std::move(text)); };
  fact(fmt::format("architecture: {}", model.architecture));
  fact(fmt::format("parameters: {}", with_commas(table.parameters())));
  if (model.vision) {
    const std::int64_t vision = table_of(*model.vision).parameters();
    fact(fmt::format("parameters with the vision tower: {}", with_commas(table.parameters() + vision)));
  }
  if (table.used_parameters() != table.parameters()) {
    fact(fmt::format("parameters that a token uses: {}", with_commas(table.used_parameters())));
  }
  fact(fmt::format("multiply-accumulates of {} forward: {}", model.spec.image ? "an image" : "a sequence",
                   with_commas(table.macs())));
}

// A model with blocks that its configuration does not count is a file of its own.
void add_predictors(const InputFile& file, const ImportChoices& options, const std::string& model_file,
                    HuggingFaceModel& model) {
  const auto refuse = [&file](const std::string& why) {
    throw InputError({problem_at(file.name(), kBeginning, "--predictors: " + why)});
  };
  if (model_file == file.path().filename().string())
    refuse("makes a model of its own, whose file goes beside the scenario: give --output");
  if (model.spec.head != TransformerSpec::Head::language) refuse("the model predicts no tokens");
  model.spec.predictors = options.predictors;
  std::erase_if(model.assumed, [](const std::string& text) { return text.starts_with(kPredictorsAreLeftOut); });
}

void add_origins(const std::vector<Origin>& origins, Imported& imported) {
  imported.origins.insert(imported.origins.end(), origins.begin(), origins.end());
}

Imported import_hugging_face(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  HuggingFaceModel model = read_hugging_face(read_json(file), file.name(), options.tokens);
  if (options.predictors > 0) add_predictors(file, options, model_file, model);
  Imported imported{.kind = ImportKind::hugging_face};
  const ModelTable table = table_of(model.spec);
  add_facts(model, table, imported);
  imported.assumed = model.assumed;
  imported.assumed.emplace_back("attention keeps no scores (workload.stack: {attention: flash}), as FlashAttention");
  if (table.used_parameters() != table.parameters()) {
    imported.assumed.emplace_back("tokens are spread over experts evenly, and every device computes with all experts");
  }
  if (!options.lora.empty()) {
    const Adapters adapters = read_adapter_config(options.lora, table, model.architecture, imported.left_out);
    model.lora = adapters.yaml();
    imported.origins = adapters.origins;
  }
  add_origins(model.origins, imported);
  add_origins(origins_of_options(file.name(), options), imported);
  Choices choices(options, imported.assumed);
  imported.scenario = scenario_of(model, file.name(), model_file, choices);
  imported.model = table.yaml();
  return imported;
}

MeshAxes axes_of(const MegatronJob& job) {
  return {.tensor = job.tensor,
          .pipeline = job.pipeline,
          .context = job.context,
          .expert = job.expert,
          .expert_tensor = job.expert_tensor,
          .micro_batch = job.micro_batch};
}

MeshSizes sizes_of(const MegatronJob& job, const Flags& flags, Choices& choices) {
  const ImportChoices& options = choices.options();
  const MeshAxes axes = axes_of(job);
  const auto stated = [](std::optional<std::int64_t> value) { return static_cast<int>(value.value_or(0)); };
  const std::int64_t world_of_job = options.devices > 0 || options.workers > 0 ? 0 : job.world.value_or(0);
  const int usual_devices = world_of_job > 0 ? static_cast<int>(std::gcd(world_of_job, kUsualDevices)) : kUsualDevices;
  const int devices = choices.number(options.devices > 0 ? options.devices : stated(job.devices), usual_devices,
                                     "devices of a machine:", "--devices");
  if (world_of_job % devices != 0) {
    flags.fail("world_size", fmt::format("{} devices do not fill machines of {}", world_of_job, devices));
  }
  const int nodes = options.workers > 0 ? options.workers
                    : world_of_job > 0  ? static_cast<int>(world_of_job / devices)
                                        : stated(job.nodes);
  const int workers = choices.number(nodes, least_workers(axes, devices), "machines:", "--workers");
  const auto batch = options.batch > 0 ? std::optional<std::int64_t>(options.batch) : job.global_batch;
  return mesh_sizes(axes, workers, devices, batch, [&](MeshPart part, const std::string& message) {
    refuse_size(origins_of_flags(flags, options), options, key_of_part(part), message);
  });
}

// Only operands of two bytes are quantised.
std::string precision_of(const MegatronJob& job, const ImportChoices& options) {
  if (!options.precision.empty()) return options.precision;
  const std::string dtype = options.dtype.empty() ? job.dtype : options.dtype;
  return dtype.ends_with("16") ? job.precision : "";
}

YamlMap megatron_workload(const MegatronJob& job, const MeshSizes& sizes, const std::string& model_file,
                          const ImportChoices& options) {
  YamlMap workload;
  workload.set("kind", "layers").quote("model", model_file);
  workload.set("sizes", YamlMap().set("tokens", job.spec.tokens));
  YamlMap stack;
  stack.set("attention", !job.keeps_scores ? "flash" : job.fuses_softmax ? "fused_softmax" : "separate");
  stack.set("accumulation", job.adds_in_products ? "in_products" : "separate");
  if (job.fuses_loss) stack.set("loss", "fused");
  if (!job.experts.kernels.empty()) stack.set("experts", job.experts.kernels);
  workload.set("stack", stack);
  const std::string dtype = options.dtype.empty() ? job.dtype : options.dtype;
  workload.set("batch", sizes.batch).set("dtype", dtype);
  if (job.dtype != "f32" && job.reduces_in_f32) workload.set("parameter_dtype", "f32");
  const std::string precision = precision_of(job, options);
  const std::string optimizer = options.optimizer.empty() ? job.optimizer : options.optimizer;
  const bool has_moments = !job.moments.empty() && (optimizer == "adam" || optimizer == "lamb");
  if (!precision.empty() || has_moments) {
    YamlMap types;
    if (!precision.empty()) types.set("compute", precision);
    if (!precision.empty() && precision == job.precision && !job.recipe.empty()) types.set("recipe", job.recipe);
    if (!precision.empty() && job.gathers_quantised && precision != "nvfp4") types.set("gather", "fp8");
    if (has_moments) types.set("moments", job.moments);
    workload.set("precision", types);
  }
  workload.set("optimizer", optimizer);
  workload.set("bucket_bytes", job.bucket_bytes).set("overlap", job.overlap);
  if (!job.experts.dispatch.empty() || !job.experts.capacity.empty()) {
    YamlMap experts;
    if (!job.experts.dispatch.empty()) experts.set("dispatch", job.experts.dispatch);
    if (!job.experts.capacity.empty()) experts.set("capacity", job.experts.capacity);
    if (job.experts.groups > 0) {
      experts.set("groups", YamlMap().set("of", job.experts.groups).set("used", job.experts.used_groups));
    }
    workload.set("experts", experts);
  }
  if (!job.lora.empty()) workload.set("lora", job.lora);
  if (job.sequence_parallel) workload.set("sequence_parallel", true);
  if (job.overlaps_products) workload.set("overlap_products", true);
  const std::string recompute = options.recompute ? "true" : job.recompute;
  if (!recompute.empty()) workload.set("activation_checkpointing", recompute);
  if (job.offload.blocks > 0 || !job.offload.optimizer.empty()) {
    YamlMap offload;
    if (job.offload.blocks > 0) offload.set("activations", job.offload.blocks);
    if (!job.offload.optimizer.empty()) offload.set("optimizer", job.offload.optimizer);
    workload.set("offload", offload);
  }
  return workload;
}

YamlMap megatron_mesh(const MegatronJob& job, const MeshSizes& sizes, const ImportChoices& options) {
  YamlMap mesh;
  mesh.set("name", options.strategy.empty() ? mesh_strategy() : options.strategy);
  mesh.set("data", sizes.data).set("tensor", job.tensor).set("pipeline", job.pipeline);
  mesh.set("micro_batches", sizes.micro_batches).set("virtual_stages", job.virtual_stages);
  if (!job.stage_blocks.empty()) mesh.set("stage_blocks", fmt::format("[{}]", fmt::join(job.stage_blocks, ", ")));
  if (job.context > 1) mesh.set("context", job.context).set("context_exchange", name_of(job.context_exchange));
  if (job.axis_order != AxisOrder::tensor_data_pipeline && job.pipeline > 1 && sizes.data > 1)
    mesh.set("axis_order", name_of(job.axis_order));
  if (job.expert > 1) mesh.set("expert", job.expert);
  if (job.expert_tensor > 0) mesh.set("expert_tensor", job.expert_tensor);
  if (job.distributed_optimizer) mesh.set("distributed_optimizer", true);
  if (job.overlap_gather) mesh.set("overlap_gather", true);
  if (job.overlaps_experts && sizes.micro_batches > 1) mesh.set("overlap_experts", true);
  if (job.experts.overlaps_shared) mesh.set("overlap_shared_expert", true);
  if (job.shard_parameters) mesh.set("shard_parameters", true);
  if (job.replicate > 1) mesh.set("replicate", job.replicate);
  if (!job.scatter_gather) mesh.set("scatter_gather", false);
  return mesh;
}

YamlMap engine_of(const MegatronJob& job) {
  YamlMap engine, variables;
  engine.set("name", model_engine().name);
  for (const auto& [name, value] : job.nccl) variables.quote(name, value);
  return job.nccl.empty() ? engine : engine.below("nccl", variables);
}

std::string megatron_scenario(const MegatronJob& job, const Flags& flags, const std::string& model_file,
                              Choices& choices) {
  const ImportChoices& options = choices.options();
  const MeshSizes sizes = sizes_of(job, flags, choices);
  const std::string machine = choices.word(options.topology, std::string(kUsualMachine), "machine", "--topology");
  YamlMap scenario;
  scenario.set("schema_version", 1).quote("name", job.spec.name);
  scenario.below("workload", megatron_workload(job, sizes, model_file, options));
  scenario.below("strategy", megatron_mesh(job, sizes, options)).below("engine", engine_of(job));
  set_machines(scenario, {.name = machine, .workers = sizes.workers, .devices = sizes.devices, .gpu = options.gpu});
  return scenario.set("steps", 3).set("warmup_steps", 1).text();
}

// A model of Hugging Face beside the job becomes a table beside the scenario, wherever that is.
Imported import_torchtitan(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  TitanJob job = read_titan_job(file, options.config);
  Imported imported{.kind = ImportKind::torchtitan, .left_out = job.left_out};
  if (!job.config.empty()) {
    const InputFile config(file.path().parent_path() / job.config);
    const TransformerSpec spec = read_hugging_face(read_json(config), config.name(), job.tokens).spec;
    for (const Blocks& run : spec.blocks) job.blocks += run.copies;
    const bool has_output = model_file != file.path().filename().string();
    job.model = has_output ? model_file : job.config;
    if (has_output) imported.model = table_of(spec).yaml();
  }
  Choices choices(options, imported.assumed);
  imported.scenario = titan_scenario(job, choices, imported.left_out);
  imported.origins = origins_of_job(job, options);
  return imported;
}

Imported import_megatron(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  const Flags flags = read_flags(file);
  MegatronJob job = read_megatron(flags);
  Imported imported{.kind = ImportKind::megatron};
  const ModelTable table = table_of(job.spec);
  const Adapters adapters = read_megatron_adapters(flags, table, job.left_out);
  if (adapters.rank > 0) job.lora = adapters.yaml();
  imported.facts.push_back(fmt::format("parameters: {}", with_commas(table.parameters())));
  imported.facts.push_back(fmt::format("multiply-accumulates of a sequence forward: {}", with_commas(table.macs())));
  imported.assumed = job.assumed;
  Choices choices(options, imported.assumed);
  imported.scenario = megatron_scenario(job, flags, model_file, choices);
  imported.origins = origins_of_flags(flags, options);
  imported.model = table.yaml();
  imported.left_out = job.left_out;
  if (!job.precision.empty() && precision_of(job, options).empty()) {
    imported.left_out.push_back(fmt::format("{}: only operands of two bytes are quantised", job.precision));
  }
  return imported;
}

// Writes into the scenario what reports repeat.
Imported with_notes(Imported imported, const ImportChoices& options) {
  imported.assumed.insert(imported.assumed.end(), options.chosen.begin(), options.chosen.end());
  YamlMap notes;
  const auto add = [&notes](const char* key, const std::vector<std::string>& sentences) {
    std::vector<std::string> texts;
    std::ranges::transform(sentences, std::back_inserter(texts), [](const auto& text) { return yaml_text(text); });
    if (!texts.empty()) notes.list(key, texts);
  };
  add("assumed", imported.assumed);
  add("left_out", imported.left_out);
  imported.scenario += notes.text();
  return imported;
}

bool begins_as_json(const InputFile& file) {
  ByteSource source(file);
  const std::string_view beginning = source.next();
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (beginning[first] == '{' || beginning[first] == '[');
}

// Whether the beginning of a file has flags of Megatron-LM. In a log, other output may come before them.
bool is_megatron(const InputFile& file) {
  constexpr std::int64_t kBeginning = std::int64_t{4} << 20;
  return has_flags(beginning_of(file, kBeginning));
}

bool is_torchtitan(const InputFile& file) {
  constexpr std::int64_t kBeginning = std::int64_t{1} << 16;
  return is_titan_job(beginning_of(file, kBeginning));
}

// Decides by the first known key at the top of a JSON object. Anything else is taken as a scenario.
ImportKind kind_of_json(ByteSource& source) {
  JsonStream json(source);
  try {
    if (json.next() != JsonPart::begin_object) return ImportKind::scenario;
    while (json.next() == JsonPart::key) {
      if (json.text() == "model_type" || json.text() == "architectures") return ImportKind::hugging_face;
      if (json.text() == "schema_version") return ImportKind::scenario;
      json.skip();
    }
  } catch (const InputError&) {
    if (source.has_failed()) throw;
    // The scenario's reader says what is wrong.
  }
  return ImportKind::scenario;
}

ImportKind kind_of(const InputFile& file) {
  if (trace_kind_of(file) != TraceKind::none) return ImportKind::trace;
  ByteSource source(file);
  const ImportKind kind = kind_of_json(source);
  if (kind != ImportKind::scenario) return kind;
  if (is_torchtitan(file)) return ImportKind::torchtitan;
  return is_megatron(file) ? ImportKind::megatron : kind;
}

}  // namespace

ImportKind InputFile::kind() const {
  if (!kind_) kind_ = kind_of(*this);
  return *kind_;
}

Imported import_file(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  check_choices(file.name(), file.kind(), options);
  const std::string model = model_file.empty() ? file.path().filename().string() : model_file;
  if (file.kind() == ImportKind::hugging_face) return with_notes(import_hugging_face(file, options, model), options);
  if (file.kind() == ImportKind::megatron) return with_notes(import_megatron(file, options, model), options);
  if (file.kind() == ImportKind::torchtitan) return with_notes(import_torchtitan(file, options, model), options);
  if (file.kind() == ImportKind::trace) return import_traces({file.path()}, options, file.path().parent_path());
  if (begins_as_json(file)) read_json(file);  // says where it is broken, if it is
  throw InputError({problem_at(
      file.name(), kBeginning,
      "is nothing that tandem imports: expected a config.json of Hugging Face with a `model_type`, arguments of "
      "Megatron-LM with --num-layers and --hidden-size, a job configuration of torchtitan, or a trace of PyTorch's "
      "profiler (traceEvents) or of Chakra "
      "(.et, workload_graph)")});
}

std::string model_file_of(const InputFile& configuration, std::int64_t tokens) {
  if (configuration.kind() == ImportKind::megatron) {
    return table_of(read_megatron(read_flags(configuration)).spec).yaml();
  }
  return table_of(read_hugging_face(read_json(configuration), configuration.name(), tokens).spec).yaml();
}

}  // namespace tandem
