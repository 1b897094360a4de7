#include "scenarios/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/choices.h"
#include "scenarios/import/megatron.h"
#include "scenarios/import/models/hugging_face.h"
#include "scenarios/import/traces/trace.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/strategies.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::string_view kUsualMachine = "hgx-h100";
constexpr int kUsualDevices = 8;

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

// Returns the strategy that divides parameters among all devices, because large models do not fit a single one.
std::string sharding_strategy() {
  for (const std::string& name : strategy_names()) {
    const StrategyInfo& info = strategy_info(name);
    if (info.division && info.division->axis == &ParallelOptions::data) return name;
  }
  return std::string(default_strategy_name());
}

// Chooses the settings that the file does not give, and notes them.
class Choices {
 public:
  Choices(const ImportChoices& options, Imported& imported) : options_(options), imported_(imported) {}

  std::string word(const std::string& stated, std::string usual, const char* what, const char* option) {
    if (!stated.empty()) return stated;
    imported_.assumed.push_back(fmt::format("{} {} ({})", what, usual, option));
    return usual;
  }
  int number(int stated, int usual, const char* what, const char* option) {
    if (stated > 0) return stated;
    imported_.assumed.push_back(fmt::format("{} {} ({})", what, usual, option));
    return usual;
  }
  const ImportChoices& options() const { return options_; }

 private:
  const ImportChoices& options_;
  Imported& imported_;
};

int at_most_batch(int devices, int workers) {
  constexpr std::int64_t kMostBatch = 1 << 28;
  return static_cast<int>(std::min(kMostBatch, static_cast<std::int64_t>(devices) * workers));
}

std::string scenario_of(const HuggingFaceModel& model, const std::string& file, const std::string& model_file,
                        Choices& choices) {
  const ImportChoices& options = choices.options();
  const int devices = choices.number(options.devices, kUsualDevices, "devices of a machine:", "--devices");
  const int workers = std::max(1, options.workers);
  const int batch = choices.number(options.batch, at_most_batch(devices, workers), "global batch:", "--batch");
  if (batch < static_cast<std::int64_t>(devices) * workers) {
    throw InputError({problem_at(
        file, kBeginning,
        fmt::format("a batch of {} leaves some of {} GPUs without an example: --batch, --devices and --workers", batch,
                    static_cast<std::int64_t>(devices) * workers))});
  }
  const std::string dtype =
      choices.word(options.dtype.empty() ? model.dtype : options.dtype, "bf16", "dtype", "--dtype");
  const std::string optimizer = choices.word(options.optimizer, "adam", "optimizer", "--optimizer");
  const std::string strategy = choices.word(options.strategy, sharding_strategy(), "strategy", "--strategy");
  const std::string machine = choices.word(options.topology, std::string(kUsualMachine), "machine", "--topology");
  const StrategyInfo* info = find_strategy(strategy);
  if (workers > 1 && info != nullptr && !info->several_workers) {
    throw InputError({problem_at(
        file, kBeginning,
        fmt::format("strategy '{}' runs on one machine, not on {}: --strategy and --workers", strategy, workers))});
  }
  YamlMap workload;
  workload.set("kind", "layers").quote("model", model_file);
  if (!model.spec.has_fixed_tokens) workload.set("sizes", YamlMap().set("tokens", model.spec.tokens));
  workload.set("batch", batch).set("dtype", dtype).set("optimizer", optimizer);
  if (options.recompute) workload.set("activation_checkpointing", true);
  YamlMap scenario;
  scenario.set("schema_version", 1).quote("name", model.spec.name).below("workload", workload);
  scenario.set("strategy", YamlMap().set("name", strategy)).set("engine", YamlMap().set("name", model_engine().name));
  set_machines(scenario, {.name = machine, .workers = workers, .devices = devices, .gpu = options.gpu});
  return scenario.set("steps", 3).set("warmup_steps", 1).text();
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

Imported import_hugging_face(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  const HuggingFaceModel model = read_hugging_face(read_json(file), file.name(), options.tokens);
  Imported imported{.kind = ImportKind::hugging_face};
  const ModelTable table = table_of(model.spec);
  add_facts(model, table, imported);
  imported.assumed = model.assumed;
  imported.assumed.emplace_back("attention keeps no scores (workload.stack: {attention: flash}), as FlashAttention");
  if (table.used_parameters() != table.parameters()) {
    imported.assumed.emplace_back("tokens are spread over experts evenly, and every device computes with all experts");
  }
  Choices choices(options, imported);
  imported.scenario = scenario_of(model, file.name(), model_file, choices);
  imported.model = table.yaml();
  return imported;
}

// Returns the strategy whose user gives the sizes of all axes.
std::string mesh_strategy() {
  for (const std::string& name : strategy_names()) {
    const StrategyInfo& info = strategy_info(name);
    if (info.division && info.division->axis == nullptr) return name;
  }
  return sharding_strategy();
}

// The number of devices, and how a batch is divided among them.
struct MegatronSizes {
  int workers = 1, devices = 1;
  std::int64_t data = 1, batch = 1, micro_batches = 1;
};

MegatronSizes sizes_of(const MegatronJob& job, const Flags& flags, Choices& choices) {
  const ImportChoices& options = choices.options();
  const std::int64_t replica = job.tensor * job.pipeline;
  MegatronSizes sizes;
  const auto stated = [](std::optional<std::int64_t> value) { return static_cast<int>(value.value_or(0)); };
  const std::int64_t world_of_job = options.devices > 0 || options.workers > 0 ? 0 : job.world.value_or(0);
  const int usual_devices = world_of_job > 0 ? static_cast<int>(std::gcd(world_of_job, kUsualDevices)) : kUsualDevices;
  sizes.devices = choices.number(options.devices > 0 ? options.devices : stated(job.devices), usual_devices,
                                 "devices of a machine:", "--devices");
  if (world_of_job % sizes.devices != 0) {
    flags.fail("world_size", fmt::format("{} devices do not fill machines of {}", world_of_job, sizes.devices));
  }
  const int nodes = options.workers > 0 ? options.workers
                    : world_of_job > 0  ? static_cast<int>(world_of_job / sizes.devices)
                                        : stated(job.nodes);
  const auto least = static_cast<int>((replica * job.context + sizes.devices - 1) / sizes.devices);
  sizes.workers = choices.number(nodes, least, "machines:", "--workers");
  const std::int64_t world = static_cast<std::int64_t>(sizes.workers) * sizes.devices;
  if (world % (replica * job.context) != 0) {
    flags.fail("tensor_model_parallel_size",
               fmt::format("{} devices cannot be divided into groups of tensor {} x pipeline {} x context {}", world,
                           job.tensor, job.pipeline, job.context));
  }
  sizes.data = world / replica / job.context;
  if (sizes.data * job.context % job.expert != 0) {
    flags.fail("expert_model_parallel_size",
               fmt::format("{} does not divide the {} devices of data {} x context {}", job.expert,
                           sizes.data * job.context, sizes.data, job.context));
  }
  const std::int64_t usual = sizes.data * job.micro_batch * std::max<std::int64_t>(1, job.pipeline);
  sizes.batch = options.batch > 0 ? options.batch : job.global_batch.value_or(usual);
  if (sizes.batch % (job.micro_batch * sizes.data) != 0) {
    flags.fail("global_batch_size", fmt::format("{} is no multiple of {} replicas x micro-batches of {}", sizes.batch,
                                                sizes.data, job.micro_batch));
  }
  sizes.micro_batches = sizes.batch / sizes.data / job.micro_batch;
  return sizes;
}

YamlMap megatron_workload(const MegatronJob& job, const MegatronSizes& sizes, const std::string& model_file,
                          const ImportChoices& options) {
  YamlMap workload;
  workload.set("kind", "layers").quote("model", model_file);
  workload.set("sizes", YamlMap().set("tokens", job.spec.tokens));
  workload.set("stack", YamlMap().set("attention", job.keeps_scores ? "separate" : "flash"));
  workload.set("batch", sizes.batch).set("dtype", options.dtype.empty() ? job.dtype : options.dtype);
  if (job.dtype != "f32") workload.set("parameter_dtype", "f32");
  workload.set("optimizer", options.optimizer.empty() ? job.optimizer : options.optimizer);
  workload.set("bucket_bytes", job.bucket_bytes).set("overlap", job.overlap);
  if (job.sequence_parallel) workload.set("sequence_parallel", true);
  if (job.recompute || options.recompute) workload.set("activation_checkpointing", true);
  return workload;
}

YamlMap megatron_mesh(const MegatronJob& job, const MegatronSizes& sizes, const ImportChoices& options) {
  YamlMap mesh;
  mesh.set("name", options.strategy.empty() ? mesh_strategy() : options.strategy);
  mesh.set("data", sizes.data).set("tensor", job.tensor).set("pipeline", job.pipeline);
  mesh.set("micro_batches", sizes.micro_batches).set("virtual_stages", job.virtual_stages);
  if (job.context > 1) mesh.set("context", job.context);
  if (job.expert > 1) mesh.set("expert", job.expert);
  if (job.distributed_optimizer) mesh.set("distributed_optimizer", true);
  if (job.overlap_gather) mesh.set("overlap_gather", true);
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
  const MegatronSizes sizes = sizes_of(job, flags, choices);
  const std::string machine = choices.word(options.topology, std::string(kUsualMachine), "machine", "--topology");
  YamlMap scenario;
  scenario.set("schema_version", 1).quote("name", job.spec.name);
  scenario.below("workload", megatron_workload(job, sizes, model_file, options));
  scenario.below("strategy", megatron_mesh(job, sizes, options)).below("engine", engine_of(job));
  set_machines(scenario, {.name = machine, .workers = sizes.workers, .devices = sizes.devices, .gpu = options.gpu});
  return scenario.set("steps", 3).set("warmup_steps", 1).text();
}

Imported import_megatron(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  const Flags flags = read_flags(file);
  const MegatronJob job = read_megatron(flags);
  Imported imported{.kind = ImportKind::megatron};
  const ModelTable table = table_of(job.spec);
  imported.facts.push_back(fmt::format("parameters: {}", with_commas(table.parameters())));
  imported.facts.push_back(fmt::format("multiply-accumulates of a sequence forward: {}", with_commas(table.macs())));
  imported.assumed = job.assumed;
  Choices choices(options, imported);
  imported.scenario = megatron_scenario(job, flags, model_file, choices);
  imported.model = table.yaml();
  imported.left_out = job.left_out;
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
  return kind == ImportKind::scenario && is_megatron(file) ? ImportKind::megatron : kind;
}

}  // namespace

ImportKind InputFile::kind() const {
  if (!kind_) kind_ = kind_of(*this);
  return *kind_;
}

Imported import_file(const InputFile& file, const ImportChoices& options, const std::string& model_file) {
  check_choices(file.name(), file.kind(), options);
  const std::string model = model_file.empty() ? file.path().filename().string() : model_file;
  if (file.kind() == ImportKind::hugging_face) return import_hugging_face(file, options, model);
  if (file.kind() == ImportKind::megatron) return import_megatron(file, options, model);
  if (file.kind() == ImportKind::trace) return import_traces({file.path()}, options, file.path().parent_path());
  if (begins_as_json(file)) read_json(file);  // says where it is broken, if it is
  throw InputError({problem_at(
      file.name(), kBeginning,
      "is nothing that tandem imports: expected a config.json of Hugging Face with a `model_type`, arguments of "
      "Megatron-LM with --num-layers and --hidden-size, or a trace of PyTorch's profiler (traceEvents) or of Chakra "
      "(.et, workload_graph)")});
}

std::string model_file_of(const InputFile& configuration, std::int64_t tokens) {
  if (configuration.kind() == ImportKind::megatron) {
    return table_of(read_megatron(read_flags(configuration)).spec).yaml();
  }
  return table_of(read_hugging_face(read_json(configuration), configuration.name(), tokens).spec).yaml();
}

}  // namespace tandem
