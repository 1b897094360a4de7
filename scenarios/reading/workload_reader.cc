#include "scenarios/reading/workload_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>

#include "scenarios/import/base/input_file.h"
#include "scenarios/import/traces/retime.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/model/layer_reader.h"
#include "scenarios/model/model_reader.h"
#include "scenarios/reading/experts_reader.h"
#include "scenarios/reading/lora_reader.h"
#include "scenarios/reading/recomputation_reader.h"
#include "scenarios/reading/sequences_reader.h"
#include "scenarios/scenario/named_files.h"
#include "scenarios/scenario/shared_parts.h"
#include "scenarios/workloads/computed/computed_model.h"
#include "scenarios/workloads/computed/quantised_operands.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBatch = 1 << 28;
constexpr double kMostLearningRate = 1e6;
constexpr PackagedFiles kDataSets{"data set", "scenarios/data", ".csv", "digits"};
constexpr PackagedFiles kTexts{"text", "scenarios/data", ".txt", "alice"};
constexpr PackagedFiles kModels{"model", "scenarios/models", ".yaml", ""};

MlpSettings read_mlp(const YamlReader& map, const fs::path& folder, SharedParts& parts) {
  MlpSettings mlp;
  const YamlReader data = map.optional("data");
  if (const auto file = packaged_or_file(data, folder, kDataSets)) {
    mlp.rows = parts.get<LabelledRows>(file->string(), [&] {
      return included(data, [&] { return std::make_shared<const LabelledRows>(read_labelled_rows(*file)); });
    });
  }
  if (const YamlReader hidden = map.optional("hidden")) {
    mlp.hidden.clear();
    for (const YamlReader& size : hidden.list()) mlp.hidden.push_back(size.integer(1, 65536, 1));
    if (hidden.is_list() && (mlp.hidden.empty() || mlp.hidden.size() > 64)) {
      hidden.error(fmt::format("needs 1 to 64 layer sizes, found {}", mlp.hidden.size()));
    }
  }
  mlp.learning_rate =
      map.optional("learning_rate").number({.above = 0, .most = kMostLearningRate, .otherwise = mlp.learning_rate});
  mlp.momentum = map.optional("momentum").number({.least = 0, .most = 0.999});
  mlp.seed =
      static_cast<std::uint64_t>(map.optional("seed").whole_number(0, std::numeric_limits<std::int64_t>::max(), 1));
  return mlp;
}

std::map<std::string, std::int64_t> read_sizes(const YamlReader& map) {
  std::map<std::string, std::int64_t> sizes;
  if (!map) return sizes;
  for (const auto& [name, value] : map.entries()) sizes[name] = value.whole_number(1, kMostModelElements, 1);
  return sizes;
}

// A file that is open already need not be there.
std::optional<fs::path> file_of_model(const YamlReader& value, const fs::path& folder, const SharedParts& parts) {
  const YamlNode* const node = value.node();
  if (node != nullptr && node->kind == YamlKind::scalar && is_file_name(node->text)) {
    const fs::path file = folder / node->text;
    if (parts.find<InputFile>(file.lexically_normal().string())) return file;
  }
  return packaged_or_file(value, folder, kModels);
}

// Reads a model with these sizes, or takes it, or its open file, from `parts` if it is there.
Model read_shared_model(const YamlReader& value, const fs::path& file, const std::map<std::string, std::int64_t>& sizes,
                        SharedParts& parts) {
  std::string known_as = file.string();
  for (const auto& [name, size] : sizes) known_as += fmt::format(", {}: {}", name, size);
  const auto model = parts.get<Model>(known_as, [&] {
    return included(value, [&] {
      const auto opened = parts.find<InputFile>(file.lexically_normal().string());
      return std::make_shared<const Model>(opened ? read_model(*opened, sizes) : read_model(InputFile(file), sizes));
    });
  });
  return model ? *model : Model{};
}

std::shared_ptr<const std::string> read_text(const YamlReader& value, const fs::path& file, std::int64_t tokens) {
  std::ifstream stream(file, std::ios::binary);
  auto text = std::make_shared<std::string>(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  if (static_cast<std::int64_t>(text->size()) <= tokens) {
    value.error(fmt::format("has {} bytes; sequences of {} tokens need more", text->size(), tokens));
  }
  return text;
}

// Reads how the layers learn, if they are computed: `values: real`.
void read_learning(const YamlReader& map, const fs::path& folder, LayersSettings& layers) {
  const bool is_real = map.optional("values").one_of<bool>({{"none", false}, {"real", true}}, false);
  if (!is_real) {
    for (const char* key : {"data", "learning_rate", "momentum", "dropout", "seed"}) {
      if (map.has(key)) map.optional(key).error("is for layers that are computed (values: real)");
    }
    return;
  }
  LearningSettings learning;
  const YamlReader data = map.optional("data");
  if (const auto file = packaged_or_file(data, folder, kTexts)) {
    learning.text = read_text(data, *file, layers.model.input_elements);
  }
  const double usual_rate = layers.optimizer == Optimizer::adam ? 1e-3 : 0.1;
  learning.learning_rate =
      map.optional("learning_rate").number({.above = 0, .most = kMostLearningRate, .otherwise = usual_rate});
  learning.momentum = map.optional("momentum").number({.least = 0, .most = 0.999, .otherwise = 0.9});
  learning.dropout = map.optional("dropout").number({.least = 0, .most = 0.99});
  learning.seed =
      static_cast<std::uint64_t>(map.optional("seed").whole_number(0, std::numeric_limits<std::int64_t>::max(), 1));
  if (const YamlReader experts = map.optional("experts")) {
    experts.error("is for layers that are not computed: a router decides which rows these experts get");
  }
  if (const YamlReader offload = map.optional("offload")) {
    offload.error("is for layers that are not computed: it moves memory without values");
  }
  for (const char* key : {"lora", "sequences"}) {
    if (map.has(key)) return map.optional(key).error("is for layers that are not computed, whose values mean nothing");
  }
  layers.learning = learning;
  if (layers.model.layers.empty()) return;
  if (const auto problem = computation_problem(layers)) map.optional("values").error(*problem);
}

void read_offload(const YamlReader& map, LayersSettings& layers) {
  if (!map) return;
  constexpr int kMostOffloaded = 1 << 16;
  const YamlReader blocks = map.optional("activations"), optimizer = map.optional("optimizer");
  layers.offload.blocks = blocks.integer(1, kMostOffloaded, 0);
  layers.offload.optimizer = optimizer.number({.above = 0, .most = 1});
  const bool is_empty = map.is_map() && map.has_only({"activations", "optimizer"}) && !blocks && !optimizer;
  if (is_empty) map.error("needs activations, optimizer or both");
}

// Sides that blocks must divide are those of weights; rows are filled up with zeros, which change no scale.
std::optional<std::string> undivided_side(const LayersSettings& layers) {
  const std::int64_t block = dividing_block(layers.quantised);
  for (const Layer& layer : layers.model.layers) {
    if (!layer.can_be_quantised()) continue;
    for (const auto& [side, what] : {std::pair(layer.gemm->depth, "inputs"), {layer.gemm->columns, "outputs"}}) {
      if (side % block == 0) continue;
      return fmt::format("blocks of {} do not divide the {} {} of layer '{}'", block, side, what, layer.name);
    }
  }
  return std::nullopt;
}

// Values are rounded in f32; where there are none, only operands of two bytes are quantised.
void check_quantised(const YamlReader& compute, const LayersSettings& layers) {
  const std::vector<Layer>& all = layers.model.layers;
  if (!all.empty() && std::ranges::none_of(all, &Layer::can_be_quantised)) {
    compute.error(fmt::format("model '{}' has no dense layers in groups that repeat", layers.model.name));
  }
  if (layers.learning) {
    if (layers.dtype != DType::f32) {
      compute.error(fmt::format("rounds values of f32 only; found dtype {}", name_of(layers.dtype)));
    }
    if (const auto problem = undivided_side(layers)) compute.error(*problem);
  } else if (layers.dtype != DType::f16 && layers.dtype != DType::bf16) {
    compute.error(fmt::format("is for a dtype of two bytes, whose operands are quantised; found dtype {}",
                              name_of(layers.dtype)));
  }
}

// Reads one type for all of the optimizer's moments, or one for each.
void read_moments(const YamlReader& value, LayersSettings& layers) {
  if (!value) return;
  if (layers.learning) {
    return value.error("is for layers that are not computed: real moments have the type of their parameters");
  }
  if (layers.optimizer == Optimizer::sgd) return value.error("optimizer sgd keeps none; momentum, adam and lamb do");
  const auto type = [](const YamlReader& word) -> std::optional<DType> {
    if (!word) return std::nullopt;
    return word.one_of<DType>({{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"fp8", DType::fp8}});
  };
  if (!value.is_map()) {
    layers.moments.first = layers.moments.second = type(value);
    return;
  }
  const YamlReader first = value.optional("first"), second = value.optional("second");
  layers.moments = {.first = type(first), .second = type(second)};
  const bool is_empty = value.has_only({"first", "second"}) && !first && !second;
  if (is_empty) value.error("needs a type for all moments, or first, second or both");
  if (second && moments_of(layers.optimizer) == 1) second.error("optimizer momentum keeps one moment, the first");
}

void read_precision(const YamlReader& map, LayersSettings& layers) {
  if (!map) return;
  const YamlReader compute = map.optional("compute"), moments = map.optional("moments");
  read_moments(moments, layers);
  const bool has_others = !map.has_only({"compute", "moments", "recipe", "gather"});
  if (!compute) {
    if (has_others) return;
    for (const char* key : {"recipe", "gather"}) {
      if (map.has(key)) return map.optional(key).error("is for operands that are quantised (compute)");
    }
    if (map.is_map() && !moments) map.error("needs compute, moments or both");
    return;
  }
  layers.quantised = compute.one_of<Quantised>(
      {{"fp8", Quantised::fp8}, {"mxfp8", Quantised::mxfp8}, {"nvfp4", Quantised::nvfp4}}, Quantised::none);
  const YamlReader recipe = map.optional("recipe");
  layers.recipe = recipe.one_of<ScalingRecipe>({{"tensorwise", ScalingRecipe::tensorwise},
                                                {"rowwise", ScalingRecipe::rowwise},
                                                {"blockwise", ScalingRecipe::blockwise},
                                                {"delayed", ScalingRecipe::delayed}},
                                               ScalingRecipe::tensorwise);
  if (recipe && (layers.quantised == Quantised::mxfp8 || layers.quantised == Quantised::nvfp4)) {
    recipe.error(fmt::format("is for compute: fp8; {} has a scale for every {} elements",
                             layers.quantised == Quantised::mxfp8 ? "mxfp8" : "nvfp4",
                             dividing_block(layers.quantised)));
  }
  const YamlReader gather = map.optional("gather");
  layers.gathers_quantised = gather.one_of<bool>({{"dtype", false}, {"fp8", true}}, false);
  if (layers.gathers_quantised && layers.quantised == Quantised::nvfp4) {
    gather.error("is for operands of one byte, fp8 and mxfp8");
  } else if (layers.gathers_quantised && layers.recipe == ScalingRecipe::rowwise) {
    gather.error("needs scales that do not depend on how a product reads weights; found recipe rowwise");
  } else if (layers.gathers_quantised && layers.learning) {
    gather.error("is for layers that are not computed: real values are gathered in f32");
  }
  check_quantised(compute, layers);
}

LayersSettings read_layers(const YamlReader& map, const fs::path& folder, SharedParts& parts) {
  LayersSettings layers;
  const YamlReader model = map.required("model");
  const std::map<std::string, std::int64_t> sizes = read_sizes(map.optional("sizes"));
  if (const auto file = file_of_model(model, folder, parts)) {
    layers.model = read_shared_model(model, *file, sizes, parts);
  }
  layers.stack = read_stack(map.optional("stack"), layers.model.stack);
  layers.dtype = map.optional("dtype").one_of<DType>(
      {{"f32", DType::f32}, {"tf32", DType::tf32}, {"f16", DType::f16}, {"bf16", DType::bf16}, {"f64", DType::f64}});
  if (const YamlReader dtype = map.optional("parameter_dtype")) {
    layers.parameter_dtype =
        dtype.one_of<DType>({{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}, {"f64", DType::f64}});
  }
  layers.optimizer = map.optional("optimizer")
                         .one_of<Optimizer>({{"sgd", Optimizer::sgd},
                                             {"momentum", Optimizer::momentum},
                                             {"adam", Optimizer::adam},
                                             {"lamb", Optimizer::lamb}});
  layers.bucket_bytes = static_cast<std::int64_t>(
      map.optional("bucket_bytes").quantity(Dimension::bytes, {.otherwise = 25e6, .most = 1e15}));
  layers.overlap = map.optional("overlap").boolean(true);
  layers.overlap_tensor = map.optional("overlap_tensor").boolean(true);
  layers.overlap_products = map.optional("overlap_products").boolean(false);
  read_experts(map.optional("experts"), folder, layers);
  read_lora(map.optional("lora"), layers);
  read_sequences(map.optional("sequences"), folder, layers);
  layers.sequence_parallel = map.optional("sequence_parallel").boolean(false);
  layers.gradient_accumulation_steps = map.optional("gradient_accumulation_steps").integer(1, kMostBatch, 1);
  read_recomputation(map.optional("activation_checkpointing"), layers);
  read_offload(map.optional("offload"), layers);
  constexpr std::int64_t kMostOfEpoch = 1'000'000'000'000'000;
  layers.epoch = map.optional("epoch").whole_number(1, kMostOfEpoch, 0);
  const YamlReader variables = map.optional("variables");
  layers.variables_are_tensors = variables.one_of<bool>({{"buckets", false}, {"tensors", true}});
  if (layers.variables_are_tensors && map.has("bucket_bytes")) {
    map.optional("bucket_bytes").error("is for `variables: buckets`; each tensor is a variable here");
  }
  read_learning(map, folder, layers);
  read_precision(map.optional("precision"), layers);
  return layers;
}

void check_accumulation(const YamlReader& map, const LayersSettings& layers, int batch) {
  if (layers.gradient_accumulation_steps > batch) {
    map.optional("gradient_accumulation_steps")
        .error(fmt::format("{} passes over a batch of {} leave some without an example",
                           layers.gradient_accumulation_steps, batch));
  }
}

// Changes the ranks to those of a job with another number of replicas; 0: as recorded.
void retime(int replicas, const YamlReader& files, TraceSettings& trace) {
  if (!trace.ranks || replicas == 0) return;
  const std::shared_ptr<const std::vector<RankTrace>> recorded = trace.ranks;
  trace.replica_size = std::max(1, replica_size(recorded->front()));
  trace.ranks =
      included(files, [&] { return std::make_shared<const std::vector<RankTrace>>(retimed(*recorded, replicas)); });
  if (!trace.ranks) return;
  trace.world = trace.ranks->front().world;
  trace.changes.push_back(
      fmt::format("{} replicas, recorded with {}", replicas, recorded->front().world / trace.replica_size));
}

TraceSettings read_trace(const YamlReader& map, const fs::path& folder, SharedParts& parts) {
  const YamlReader files = map.required("files");
  std::vector<fs::path> found;
  for (const YamlReader& file : files.list()) {
    if (const auto path = existing_file(file, folder)) found.push_back(*path);
  }
  if (files.is_list() && files.list().empty()) files.error("needs a file for at least one rank");
  const auto ranks = static_cast<int>(map.optional("ranks").integer(1, kMostRanksOfJob, 0));
  const auto replicas = static_cast<int>(map.optional("replicas").integer(2, kMostRanksOfJob, 0));
  if (found.empty()) return {};
  const auto trace = parts.get<TraceSettings>(fmt::format("{}: {}", folder.string(), text_of(*map.node())), [&] {
    auto read = std::make_shared<TraceSettings>();
    read->ranks = included(files, [&] { return read_traces(found, ranks); });
    if (read->ranks) read->world = read->ranks->front().world;
    retime(replicas, files, *read);
    return read;
  });
  return *trace;
}

}  // namespace

WorkloadSettings read_workload(const YamlReader& map, const fs::path& folder, SharedParts& parts) {
  enum class Kind : std::uint8_t { mlp, layers, trace };
  WorkloadSettings workload;
  const YamlReader kind_word = map.required("kind");
  const Kind kind = kind_word.one_of<Kind>({{"mlp", Kind::mlp}, {"layers", Kind::layers}, {"trace", Kind::trace}});
  if (kind == Kind::trace) {
    workload.kind = read_trace(map, folder, parts);
    return workload;
  }
  workload.batch = map.required("batch").integer(1, kMostBatch, 1);
  if (const YamlReader spread = map.optional("spread")) workload.spread = spread.number({.least = 0, .most = 1});
  if (kind == Kind::mlp) {
    workload.kind = read_mlp(map, folder, parts);
  } else {
    workload.kind = read_layers(map, folder, parts);
    check_accumulation(map, std::get<LayersSettings>(workload.kind), workload.batch);
  }
  return workload;
}

}  // namespace tandem
