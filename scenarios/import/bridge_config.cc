// Configurations of Megatron-Bridge as it writes them beside checkpoints: run_config.yaml, a ConfigContainer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "scenarios/import/flag_sources.h"
#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr std::string_view kContainer = "megatron.bridge.training.config.ConfigContainer";
constexpr std::string_view kTarget = "_target_";

// The sections that decide what a step does, later ones over earlier ones; of the model all keys.
struct Section {
  std::string_view name;
  std::vector<std::string_view> keys;
};
const std::vector<Section>& sections() {
  static const std::vector<Section> kSections{
      {"model", {}},
      {"mixed_precision",
       {"bf16", "fp16", "fp8", "fp8_recipe", "fp8_param_gather", "fp4", "fp4_recipe", "grad_reduce_in_fp32"}},
      {"ddp",
       {"bucket_size", "data_parallel_sharding_strategy", "fp8_param_gather", "grad_reduce_in_fp32",
        "num_distributed_optimizer_instances", "overlap_grad_reduce", "overlap_param_gather",
        "use_distributed_optimizer", "use_megatron_fsdp"}},
      {"optimizer",
       {"optimizer", "optimizer_cpu_offload", "optimizer_offload_fraction", "use_precision_aware_optimizer",
        "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}},
      {"train", {"global_batch_size", "micro_batch_size"}},
      {"dist", {"use_tp_pp_dp_mapping"}},
      {"comm_overlap", {"tp_comm_overlap", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute"}}};
  return kSections;
}

constexpr std::array<std::string_view, 4> kOfAdapters{"dim", "target_modules", "exclude_modules", "dropout"};

// The letter of a layer in a layout of stages.
char letter_of(std::string_view layer) {
  return layer == "embedding" ? 'E' : layer == "mtp" ? 'm' : layer == "loss" ? 'L' : 't';
}

class BridgeConfig {
 public:
  explicit BridgeConfig(const YamlNode& root) : root_(root) {}

  std::vector<Flag> arguments() {
    for (const Section& section : sections()) {
      const YamlNode* map = value_of(root_, section.name);
      if (map == nullptr || map->kind != YamlKind::map) continue;
      for (const YamlNode::Entry& entry : map->entries) {
        const bool is_read =
            section.keys.empty() ? !entry.key.starts_with('_') : std::ranges::count(section.keys, entry.key) > 0;
        if (is_read && entry.value->kind != YamlKind::null) add(entry);
      }
    }
    add_adapters();
    return std::move(arguments_);
  }

 private:
  static const YamlNode* value_of(const YamlNode& map, std::string_view key) {
    const auto found = std::ranges::find(map.entries, key, &YamlNode::Entry::key);
    return found == map.entries.end() ? nullptr : found->value;
  }

  // As arguments of their own, since their names say little outside of the section.
  void add_adapters() {
    const auto section = std::ranges::find(root_.entries, "peft", &YamlNode::Entry::key);
    if (section == root_.entries.end() || section->value->kind != YamlKind::map) return;
    arguments_.push_back({.name = "peft_kind", .value = "", .line = section->line, .column = section->column});
    for (const YamlNode::Entry& entry : section->value->entries) {
      const bool is_kind = entry.key == kTarget;
      if (!is_kind && std::ranges::count(kOfAdapters, entry.key) == 0) continue;
      const bool is_null = entry.value->kind == YamlKind::null;
      if (is_null && entry.key != "target_modules") continue;  // null targets are none, missing ones the usual
      const std::string text = is_null ? "" : text_of(entry);
      arguments_.push_back({.name = is_kind ? "peft_kind" : "peft_" + entry.key,
                            .value = is_kind ? text.substr(text.rfind('.') + 1) : text,
                            .line = entry.line,
                            .column = entry.column});
    }
  }

  void add(const YamlNode::Entry& entry) {
    const std::string text = text_of(entry);
    const auto flag = [&](const char* name, const char* value) {
      arguments_.push_back({.name = name, .value = value, .line = entry.line, .column = entry.column});
    };
    const bool is_on = text == "True";
    if (entry.key == "gated_linear_unit") return flag("swiglu", is_on ? "True" : "False");
    if (entry.key == "share_embeddings_and_output_weights") {
      return flag("untie_embeddings_and_output_weights", is_on ? "False" : "True");
    }
    if (entry.key == "grad_reduce_in_fp32") return flag("grad_reduce_in_bf16", is_on ? "False" : "True");
    if (entry.key == "should_pad_vocab" && !is_on) return flag("make_vocab_size_divisible_by", "1");
    if (entry.key == "activation_func") {
      if (text.find("squared_relu") != std::string::npos) flag("squared_relu", "True");
      return;
    }
    if (entry.key == "position_embedding_type" && text == "yarn") return flag("position_embedding_type", "rope");
    if (entry.key == "num_query_groups") flag("group_query_attention", "True");
    const std::string name = entry.key == "bucket_size"       ? "ddp_bucket_size"
                             : entry.key == "num_moe_experts" ? "num_experts"
                                                              : entry.key;
    if (!text.empty()) {
      arguments_.push_back({.name = name, .value = text, .line = entry.line, .column = entry.column});
    }
  }

  // As Python writes it. Maps are functions and types of Python, by their names.
  static std::string text_of(const YamlNode::Entry& entry) {
    const YamlNode& value = *entry.value;
    if (value.kind == YamlKind::list && entry.key == "pipeline_model_parallel_layout") return layout_of(value);
    if (value.kind == YamlKind::list) {
      std::vector<std::string> items;
      for (const YamlNode* item : value.items) items.push_back(item->text);
      return entry.key.ends_with("_freq") ? fmt::format("[{}]", fmt::join(items, ","))
                                          : fmt::format("{}", fmt::join(items, " "));
    }
    if (value.kind == YamlKind::map) {
      const YamlNode* target = value_of(value, kTarget);
      return target == nullptr ? "" : target->text.substr(target->text.rfind('.') + 1);
    }
    if (value.quoted) return value.text;
    return value.text == "true" ? "True" : value.text == "false" ? "False" : value.text;
  }

  // A list of stages, each a list of layers.
  static std::string layout_of(const YamlNode& stages) {
    std::vector<std::string> letters;
    for (const YamlNode* stage : stages.items) {
      std::string& layers = letters.emplace_back();
      for (const YamlNode* layer : stage->items) layers += letter_of(layer->text);
    }
    return fmt::format("{}", fmt::join(letters, "|"));
  }

  const YamlNode& root_;
  std::vector<Flag> arguments_;
};

}  // namespace

bool has_bridge_config(std::string_view text) {
  return text.find(kContainer) != std::string_view::npos && text.find(kTarget) != std::string_view::npos;
}

void read_bridge_config(std::string_view text, Flags& flags) {
  const YamlDocument document = YamlDocument::parse(text, flags.file());
  read_arguments(BridgeConfig(document.root()).arguments(), flags);
}

}  // namespace tandem
