#include "scenarios/import/models/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/import/models/config_values.h"

namespace tandem {
namespace {

// Names of modules, and the rows of tables that they are.
struct Module {
  std::vector<std::string_view> names;
  std::vector<std::string_view> rows;
};

const std::vector<Module>& modules() {
  static const std::vector<Module> kModules{
      {{"q_proj", "q_b_proj", "wq", "linear_q_proj", "linear_q_up_proj"}, {"query"}},
      {{"k_proj", "wk"}, {"key"}},
      {{"v_proj", "wv"}, {"value"}},
      {{"qkv_proj", "query_key_value", "c_attn", "Wqkv", "linear_qkv"}, {"query", "key", "value"}},
      {{"q_a_proj", "linear_q_down_proj"}, {"query_down"}},
      {{"kv_a_proj_with_mqa", "linear_kv_down_proj"}, {"key_value_down"}},
      {{"kv_b_proj", "linear_kv_up_proj"}, {"key_value"}},
      {{"o_proj", "out_proj", "wo", "linear_proj"}, {"attention_output"}},
      {{"gate_proj"}, {"gate"}},
      {{"up_proj", "fc1"}, {"up"}},
      {{"gate_up_proj", "linear_fc1"}, {"gate", "up"}},
      {{"down_proj", "fc2", "linear_fc2"}, {"down"}},
      {{"lm_head", "embed_out", "output_layer"}, {"head"}}};
  return kModules;
}

bool has_row(const ModelTable& table, const std::string& name) {
  return std::ranges::any_of(
      table.groups, [&](const TableGroup& group) { return std::ranges::count(group.rows, name, &TableRow::name) > 0; });
}

void add_item(const std::vector<std::string>& rows, Adapters& adapters) {
  const std::string item = rows.size() == 1 ? rows.front() : fmt::format("[{}]", fmt::join(rows, ", "));
  if (std::ranges::count(adapters.layers, item) == 0) adapters.layers.push_back(item);
}

// All dense layers of blocks but for experts and their routers.
void add_all(const ModelTable& table, Adapters& adapters, std::vector<std::string>& left_out) {
  bool has_experts = false;
  for (const TableGroup& group : table.groups) {
    for (const TableRow& row : group.rows) {
      const bool is_dense = row.weights > 0 && row.macs > 0;
      has_experts = has_experts || (is_dense && row.used_weights < 1);
      if (!group.name.empty() && is_dense && row.used_weights == 1 && row.name != "router") {
        add_item({row.name}, adapters);
      }
    }
  }
  if (has_experts) left_out.emplace_back("adapters of experts");
}

class AdapterConfig {
 public:
  AdapterConfig(const JsonValue& document, std::string file) : config_(document, std::move(file)) {}

  Adapters read(const ModelTable& table, std::vector<std::string>& left_out) const {
    const std::string type = config_.text({"peft_type"}, "LORA");
    if (type != "LORA") fail("peft_type", fmt::format("'{}' is not modelled; LORA is", type));
    Adapters adapters{.rank = config_.size({"r"})};
    const JsonValue* const targets = config_.find({"target_modules"});
    if (targets == nullptr) fail("target_modules", "is missing: which layers have adapters");
    if (!targets->is_list()) {
      if (targets->text != "all-linear") fail("target_modules", "expected a list of names or all-linear");
      add_all(table, adapters, left_out);
    }
    for (const JsonValue& target : targets->items) {
      const std::string_view name = std::string_view(target.text).substr(target.text.rfind('.') + 1);
      if (!add_module(name, table, adapters, left_out)) {
        config_.fail(target, "target_modules", fmt::format("the model has no dense layer '{}'", target.text));
      }
    }
    if (adapters.layers.empty()) fail("target_modules", "names no layer");
    name_rest(left_out);
    return adapters;
  }

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& message) const {
    const JsonValue* const at = config_.find({name});
    config_.fail(at != nullptr ? *at : config_.object(), name, message);
  }

  void name_rest(std::vector<std::string>& left_out) const {
    if (const double dropout = config_.number({"lora_dropout"}, 0); dropout > 0) {
      left_out.push_back(fmt::format("lora_dropout {}: adapters read their input as it is", dropout));
    }
    if (config_.text({"bias"}, "none") != "none") left_out.emplace_back("bias: biases are frozen");
    if (config_.boolean({"use_dora"}, false)) left_out.emplace_back("use_dora: magnitudes of weights");
    for (const std::string_view name : {"modules_to_save", "layers_to_transform", "rank_pattern", "exclude_modules"}) {
      const JsonValue* const value = config_.find({name});
      const bool is_given =
          value != nullptr && (!value->items.empty() || !value->members.empty() || !value->text.empty());
      if (is_given) left_out.push_back(fmt::format("{}: the named layers are like the others of their kind", name));
    }
  }

  ConfigValues config_;
};

}  // namespace

std::string Adapters::yaml() const {
  return fmt::format("{{rank: {}, layers: [{}]}}", rank, fmt::join(layers, ", "));
}

bool add_module(std::string_view module, const ModelTable& table, Adapters& adapters,
                std::vector<std::string>& left_out) {
  const auto known =
      std::ranges::find_if(modules(), [&](const Module& one) { return std::ranges::count(one.names, module) > 0; });
  if (known == modules().end()) return false;
  std::vector<std::string> rows;
  bool has_experts = false;
  for (const std::string_view row : known->rows) {
    if (has_row(table, std::string(row))) rows.emplace_back(row);
    has_experts = has_experts || has_row(table, fmt::format("expert_{}", row));
  }
  if (has_experts) left_out.push_back(fmt::format("{}: adapters of experts", module));
  if (!rows.empty()) add_item(rows, adapters);
  return has_experts || !rows.empty();
}

Adapters read_adapter_config(const std::filesystem::path& file, const ModelTable& table,
                             std::vector<std::string>& left_out) {
  const InputFile input(file);
  const JsonValue document = read_json(input);
  return AdapterConfig(document, input.name()).read(table, left_out);
}

}  // namespace tandem
