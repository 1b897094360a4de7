#include "scenarios/validation/ledger/ledger_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <regex>
#include <vector>

#include "strategies/strategies.h"
#include "topologies/base/error.h"

namespace tandem::validation {
namespace {

using Json = nlohmann::ordered_json;

std::string strategy_where(bool (*is_it)(const StrategyInfo& info)) {
  for (const std::string& name : strategy_names()) {
    if (is_it(strategy_info(name))) return name;
  }
  TANDEM_UNREACHABLE("a strategy of Tandem's own");
}

bool is_of_replicas(const StrategyInfo& info) {
  return info.several_workers && info.compared_as == ComparedRuns::replicas &&
         info.parameter_servers == ServerUse::none && !info.is_registered;
}

bool is_mesh(const StrategyInfo& info) {
  return info.has_free_mesh() && !info.is_registered;
}

// An image network in f16, channels last.
LedgerJob image_network(const LedgerRow& row, const char* model, const char* optimizer, const char* fusion) {
  return {.workload = {{"kind", "layers"},
                       {"model", model},
                       {"batch", row.batch},
                       {"dtype", "f16"},
                       {"optimizer", optimizer},
                       {"stack", {{"layout", "nhwc"}, {"fusion", fusion}}}},
          .strategy = {{"name", strategy_where(is_of_replicas)}}};
}

// MXNet, by NVIDIA: batch norms stay on the chip, and are parts of convolutions on H100 and since the rounds of 2023.
LedgerJob resnet(const LedgerRow& row) {
  const bool has_graphs = row.round >= "v3" || row.accelerator.find("H100") != std::string::npos;
  return image_network(row, "resnet50", "momentum", has_graphs ? "in_convolutions" : "persistent");
}

// PyTorch, by NVIDIA: norms and sums are compiled, products of heads have their bias and activation, and one CUDA graph
// has the whole step.
LedgerJob retinanet(const LedgerRow& row) {
  return image_network(row, "retinanet", "adam", "compiled");
}

// MXNet, by NVIDIA: norms are kernels with their activation. Those with most of the bytes are larger than a chip.
// Horovod reduces all gradients in one group, after the backward pass (num_groups=1).
LedgerJob unet3d(const LedgerRow& row) {
  if (row.batch < row.devices()) throw NotPredicted("several devices work on one example");
  LedgerJob job = image_network(row, "unet3d", "momentum", "hand");
  job.workload["overlap"] = false;
  return job;
}

// Returns the number with which a text begins, unless it is too large for a size.
std::optional<int> leading_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The settings of NeMo's configurations, whatever the round calls them.
class Settings {
 public:
  explicit Settings(const LedgerRow& row) : row_(row) {}

  // "8 # training.model.pipeline_model_parallel_size" is 8.
  std::optional<int> number(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (const auto value = leading_number(word(name))) return value;
    }
    return std::nullopt;
  }
  std::optional<bool> is_on(std::string_view name) const {
    std::string text = word(name);
    std::erase(text, '\'');
    text = text.substr(0, text.find_first_of(" #"));
    std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
    if (text.empty()) return std::nullopt;
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    throw NotPredicted(fmt::format("the configuration's {} is neither true nor false", name));
  }
  std::string word(std::string_view name) const {
    const auto found = row_.settings.find(std::string(name));
    return found == row_.settings.end() ? "" : found->second;
  }
  // The number behind a word in the configuration's name: 2 of "config_GB200_256x4x48xtp4pp8cp2.sh" and "cp".
  std::optional<int> in_name(const std::string& word) const {
    std::smatch found;
    const std::regex form(word + "([0-9]+)");
    if (!std::regex_search(row_.configuration, found, form)) return std::nullopt;
    return leading_number(found[1].str());
  }

 private:
  const LedgerRow& row_;
};

// How devices divide a language model.
struct Layout {
  int tensor = 1, pipeline = 1, context = 1, virtual_stages = 1, examples = 1;  // of a micro-batch
  std::int64_t data = 1, micro_batches = 1;
};

Layout layout_of(const LedgerRow& row, const Settings& settings) {
  const auto tensor = settings.number({"TENSOR_MODEL_PARALLEL", "TP"});
  if (!tensor) throw NotPredicted("no configuration says how devices divide the model");
  Layout layout{.tensor = *tensor,
                .pipeline = settings.number({"PIPELINE_MODEL_PARALLEL", "PP"}).value_or(1),
                .context = settings.number({"CONTEXT_PARALLEL", "CP"}).value_or(settings.in_name("cp").value_or(1)),
                .virtual_stages = std::max(1, settings.number({"INTERLEAVED_PIPELINE"}).value_or(1)),
                .examples = settings.number({"MICRO_BATCH_SIZE", "MBS"}).value_or(1)};
  if (std::min({layout.tensor, layout.pipeline, layout.context, layout.examples}) < 1)
    throw NotPredicted("the configuration has a size below 1");
  if (layout.pipeline == 1) layout.virtual_stages = 1;
  const std::int64_t of_replica = std::int64_t{layout.tensor} * layout.pipeline * layout.context;
  layout.data = row.devices() / of_replica;
  const std::int64_t of_pass = layout.data * layout.examples;
  if (layout.data * of_replica != row.devices() || of_pass == 0 || row.batch % of_pass != 0)
    throw NotPredicted("the configuration that was found is for other devices or another batch");
  layout.micro_batches = row.batch / of_pass;
  return layout;
}

// 126 blocks, an embedding and a loss are 128 equal parts.
std::vector<int> blocks_without_ends(int blocks, const Layout& layout) {
  const int stages = layout.pipeline * layout.virtual_stages, parts = (blocks + 2) / stages;
  std::vector<int> all(static_cast<std::size_t>(stages), parts);
  --all.front();
  --all.back();
  return all;
}

Json mesh_of(const Settings& settings, const Layout& layout, int blocks) {
  Json mesh{{"name", strategy_where(is_mesh)},
            {"data", layout.data},
            {"tensor", layout.tensor},
            {"pipeline", layout.pipeline}};
  if (layout.context > 1) {
    mesh["context"] = layout.context;
    mesh["context_exchange"] = "ring";
  }
  mesh["micro_batches"] = layout.micro_batches;
  if (layout.virtual_stages > 1) mesh["virtual_stages"] = layout.virtual_stages;
  const int stages = layout.pipeline * layout.virtual_stages;
  const bool is_asymmetric = settings.is_on("ASYM_PP_EMBED").value_or(false) && (blocks + 2) % stages == 0;
  if (layout.pipeline > 1 && is_asymmetric) mesh["stage_blocks"] = blocks_without_ends(blocks, layout);
  if (layout.pipeline > 1 && blocks % stages != 0 && !is_asymmetric) mesh["stage_blocks"] = "balanced";
  if (layout.pipeline > 1 && layout.data > 1 && settings.is_on("TP_PP_DP_MAPPING").value_or(false))
    mesh["axis_order"] = "tensor_pipeline_data";
  if (layout.data * layout.context > 1) {
    mesh["distributed_optimizer"] = true;
    mesh["overlap_gather"] = true;
  }
  return mesh;
}

// Transformer Engine in NeMo: the recipe was that of delayed scales until a setting names another.
Json precision_of(const Settings& settings) {
  if (settings.is_on("FP4").value_or(false)) return {{"compute", "nvfp4"}};
  if (!settings.is_on("FP8").value_or(true)) return nullptr;
  Json precision{{"compute", "fp8"},
                 {"recipe", settings.word("FP8_RECIPE") == "tensorwise" ? "tensorwise" : "delayed"}};
  const bool gathers = settings.is_on("FP8_PARAM_GATHER").value_or(settings.is_on("FP8_PARAMS").value_or(false));
  if (gathers) precision["gather"] = "fp8";
  return precision;
}

// A decoder of NeMo. `sizes` has a number of `layers`.
LedgerJob language_model(const LedgerRow& row, const char* model, const Json& sizes) {
  const Settings settings(row);
  const Layout layout = layout_of(row, settings);
  Json workload{{"kind", "layers"}, {"model", model}, {"sizes", sizes}, {"batch", row.batch}, {"dtype", "bf16"}};
  if (Json precision = precision_of(settings); !precision.is_null()) workload["precision"] = std::move(precision);
  workload["optimizer"] = "adam";
  workload["stack"] = {{"attention", "flash"}, {"accumulation", "in_products"}, {"loss", "fused"}};
  if (layout.tensor > 1) {
    workload["sequence_parallel"] = settings.is_on("SEQ_PARALLEL").value_or(settings.is_on("SP").value_or(true));
    if (workload["sequence_parallel"] && settings.is_on("TP_COMM_OVERLAP").value_or(false))
      workload["overlap_products"] = true;
  }
  return {.workload = std::move(workload), .strategy = mesh_of(settings, layout, sizes.at("layers"))};
}

LedgerJob gpt3(const LedgerRow& row) {
  return language_model(row, "gpt",
                        {{"tokens", 2048}, {"hidden", 12288}, {"heads", 96}, {"layers", 96}, {"vocabulary", 51200}});
}

LedgerJob llama31_405b(const LedgerRow& row) {
  return language_model(row, "llama",
                        {{"tokens", 8192},
                         {"hidden", 16384},
                         {"heads", 128},
                         {"key_heads", 8},
                         {"intermediate", 53248},
                         {"layers", 126}});
}

LedgerJob llama31_8b(const LedgerRow& row) {
  return language_model(row, "llama", {{"tokens", 8192}, {"layers", 32}});
}

// Adapters of rank 16 for the products of attention.
LedgerJob llama2_70b_lora(const LedgerRow& row) {
  LedgerJob job = language_model(row, "llama",
                                 {{"tokens", 8192},
                                  {"hidden", 8192},
                                  {"heads", 64},
                                  {"key_heads", 8},
                                  {"intermediate", 28672},
                                  {"layers", 80},
                                  {"vocabulary", 32000}});
  job.workload["lora"] = {{"rank", 16}, {"layers", {"query", "key", "value", "attention_output"}}};
  job.strategy.erase("distributed_optimizer");
  job.strategy.erase("overlap_gather");
  return job;
}

struct KnownBenchmark {
  std::string_view name;
  LedgerJob (*job)(const LedgerRow& row);
};

constexpr KnownBenchmark kBenchmarks[] = {{"resnet", resnet},
                                          {"ssd", retinanet},
                                          {"retinanet", retinanet},
                                          {"unet3d", unet3d},
                                          {"gpt3", gpt3},
                                          {"llama31_405b", llama31_405b},
                                          {"llama31_8b", llama31_8b},
                                          {"llama2_70b_lora", llama2_70b_lora}};

// Whether a throughput in the logs is that of one device. NVIDIA's program for RetinaNet counted the examples of the
// process that writes the log (utils.py, MetricLogger.log_every) until the one for Blackwell in round 5.0.
bool counts_one_device(const LedgerRow& row) {
  if (row.benchmark == "ssd") return true;
  if (row.benchmark == "retinanet" && row.round.empty()) throw NotPredicted("it does not say its round");
  return row.benchmark == "retinanet" && row.round <= "v5.0" && row.accelerator.find("Blackwell") == std::string::npos;
}

// NVIDIA's configurations of 3D U-Net for nine nodes of eight devices have --nodes_for_eval 2.
bool has_two_nodes_for_evaluation(const LedgerRow& row) {
  constexpr int kNodes = 9, kDevicesOfNode = 8;
  const bool is_layout = row.nodes == kNodes && row.devices_of_node == kDevicesOfNode;
  return row.benchmark == "unet3d" && is_layout && row.batch == std::int64_t{kNodes - 2} * kDevicesOfNode;
}

}  // namespace

LedgerRow as_trained(LedgerRow row) {
  if (counts_one_device(row)) row.step_s /= static_cast<double>(row.devices());
  if (has_two_nodes_for_evaluation(row)) row.nodes -= 2;
  return row;
}

LedgerJob job_of(const LedgerRow& row) {
  for (const KnownBenchmark& benchmark : kBenchmarks) {
    if (benchmark.name == row.benchmark) return benchmark.job(row);
  }
  throw NotPredicted(fmt::format("there is no table of the layers of {}", row.benchmark));
}

}  // namespace tandem::validation
