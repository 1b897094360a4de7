#include "scenarios/import/models/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "scenarios/import/models/config_values.h"

namespace tandem {
namespace {

std::string item_of(const std::vector<std::string>& rows) {
  return rows.size() == 1 ? rows.front() : fmt::format("[{}]", fmt::join(rows, ", "));
}

class AdapterConfig {
 public:
  AdapterConfig(const JsonValue& document, std::string file) : config_(document, std::move(file)) {}

  Adapters read(const ModelTable& table, std::string_view architecture, std::vector<std::string>& left_out) const {
    const std::string type = config_.text({"peft_type"}, "LORA");
    if (type != "LORA") fail("peft_type", fmt::format("'{}' is not modelled; LORA is", type));
    Adapters adapters{.rank = config_.size({"r"})};
    AdapterTargets targets(table, architecture);
    read_targets(targets);
    exclude(targets, left_out);
    if (targets.is_empty()) fail("target_modules", targets.why_empty());
    adapters.layers = targets.layers();
    adapters.origins = {{"workload.lora", config_.place_of("target_modules")},
                        {"workload.lora.rank", config_.place_of("r")}};
    for (std::string& sentence : targets.differences("target_modules")) left_out.push_back(std::move(sentence));
    name_single_blocks(targets, left_out);
    name_rest(left_out);
    return adapters;
  }

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& message) const {
    const JsonValue* const at = config_.find({name});
    config_.fail(at != nullptr ? *at : config_.object(), name, message);
  }

  bool is_given(std::string_view name) const {
    const JsonValue* const value = config_.find({name});
    return value != nullptr && (!value->items.empty() || !value->members.empty() || !value->text.empty());
  }

  void read_targets(AdapterTargets& targets) const {
    const JsonValue* const names = config_.find({"target_modules"});
    const bool has_parameters = is_given("target_parameters");
    if (has_parameters && (names == nullptr || (names->is_list() && names->items.empty()))) {
      fail("target_parameters", "adapters of single parameters are not modelled, and target_modules names no layer");
    }
    if (names == nullptr) fail("target_modules", "is missing: which layers have adapters");
    if (!names->is_list()) {
      if (names->text != "all-linear") {
        fail("target_modules", "expected a list of names or all-linear; a regular expression is not read");
      }
      targets.add_all();
    }
    for (const JsonValue& name : names->items) {
      if (const auto problem = targets.add(name.text)) config_.fail(name, "target_modules", *problem);
    }
  }

  // PEFT takes names of modules that the model does not have.
  void exclude(AdapterTargets& targets, std::vector<std::string>& left_out) const {
    const JsonValue* const names = config_.find({"exclude_modules"});
    if (names == nullptr) return;
    if (!names->is_list() && !names->text.empty()) {
      left_out.emplace_back("exclude_modules: a regular expression is not read, and nothing is excluded");
    }
    for (const JsonValue& name : names->items) targets.exclude(name.text);
  }

  void name_single_blocks(const AdapterTargets& targets, std::vector<std::string>& left_out) const {
    const JsonValue* const given = config_.find({"layers_to_transform"});
    if (given == nullptr) return;
    std::set<std::int64_t> blocks;
    if (given->is_list()) {
      for (const std::int64_t block : config_.counts({"layers_to_transform"})) blocks.insert(block);
    } else {
      blocks.insert(config_.count({"layers_to_transform"}, 0));
    }
    if (blocks.empty()) return;
    if (auto sentence = targets.difference("layers_to_transform", "", blocks)) {
      left_out.push_back(std::move(*sentence));
    }
  }

  void name_rest(std::vector<std::string>& left_out) const {
    if (const double dropout = config_.number({"lora_dropout"}, 0); dropout > 0) {
      left_out.push_back(fmt::format("lora_dropout {}: adapters read their input as it is", dropout));
    }
    if (config_.text({"bias"}, "none") != "none") left_out.emplace_back("bias: biases are frozen");
    if (config_.boolean({"use_dora"}, false)) left_out.emplace_back("use_dora: magnitudes of weights");
    const std::pair<std::string_view, std::string_view> others[] = {
        {"modules_to_save", "these modules are frozen, too"},
        {"rank_pattern", "all adapters have the rank r"},
        {"target_parameters", "adapters of single parameters, such as those of experts: fewer parameters learn"},
        {"layer_replication", "every layer is there once: fewer layers, and fewer adapters"},
        {"trainable_token_indices", "the embedding is frozen: fewer parameters learn, and no gradients go down to it"}};
    for (const auto& [name, why] : others) {
      if (is_given(name)) left_out.push_back(fmt::format("{}: {}", name, why));
    }
  }

  ConfigValues config_;
};

}  // namespace

std::string Adapters::yaml() const {
  return fmt::format("{{rank: {}, layers: [{}]}}", rank, fmt::join(layers, ", "));
}

bool AdapterTargets::has_row(std::string_view name) const {
  return std::ranges::any_of(table_.groups, [&](const TableGroup& group) {
    return std::ranges::count(group.rows, name, &TableRow::name) > 0;
  });
}

std::int64_t AdapterTargets::blocks() const {
  std::int64_t count = 0;
  for (const TableGroup& group : table_.groups) count += group.name.empty() ? 0 : group.copies;
  return count;
}

namespace {

// Returns what precedes the names of the rows that a module may mean. A name without a path is that of all modules with
// it; with one, a shared expert is in the path.
std::vector<std::string_view> prefixes_of(const ModuleName& name) {
  if (name.of_shared_expert) return {"shared_"};
  if (name.of_experts) return {};
  const bool is_everywhere = name.module.find('.') == std::string::npos;
  return is_everywhere ? std::vector<std::string_view>{"", "shared_"} : std::vector<std::string_view>{""};
}

}  // namespace

bool AdapterTargets::means_experts(const ModuleName& name, const JoinedRows& joined) const {
  const auto is_expert = [&](std::string_view row) { return has_row(fmt::format("expert_{}", row)); };
  return !name.of_shared_expert && std::ranges::any_of(joined, is_expert);
}

// Finds the items of a module; none for experts.
std::optional<std::string> AdapterTargets::find(const ModuleName& name, std::string_view written,
                                                std::vector<std::string>& items) const {
  if (name.is_pattern)
    return fmt::format("which layers '{}' means is not read: expected names, numbers and *", written);
  if (name.layer && *name.layer >= blocks()) {
    return fmt::format("'{}': the model has {} layers, counted from 0", written, blocks());
  }
  const std::vector<JoinedRows> all_joined = joined_rows(architecture_);
  bool has_experts = false, is_apart = false;
  for (const JoinedRows& joined : rows_of_module(name, architecture_)) {
    has_experts = has_experts || means_experts(name, joined);
    for (const std::string_view prefix : prefixes_of(name)) {
      std::vector<std::string> rows;
      for (const std::string_view row : joined) {
        if (std::string one = fmt::format("{}{}", prefix, row); has_row(one)) rows.push_back(std::move(one));
      }
      if (rows.empty()) continue;
      const bool is_joined = std::ranges::count(all_joined, joined) > 0;
      const bool is_whole = rows.size() == joined.size() || rows.front() == fmt::format("{}up", prefix);
      if (joined.size() == 1 || (is_joined && is_whole)) {
        items.push_back(item_of(rows));
      } else {
        is_apart = true;
      }
    }
  }
  if (!has_experts && items.empty() && is_apart) {
    return fmt::format("the model has no dense layer '{}': what it joins is apart there", written);
  }
  if (!has_experts && items.empty()) return fmt::format("the model has no dense layer '{}'", written);
  return std::nullopt;
}

void AdapterTargets::add_item(std::string layers, const std::optional<std::int64_t>& block) {
  auto known = std::ranges::find(items_, layers, &Item::layers);
  if (known == items_.end()) known = items_.insert(items_.end(), {.layers = std::move(layers)});
  known->is_everywhere = known->is_everywhere || !block;
  if (block) known->blocks.insert(*block);
}

std::optional<std::string> AdapterTargets::add(std::string_view written) {
  const ModuleName name = module_name(written);
  std::vector<std::string> items;
  if (auto problem = find(name, written, items)) return problem;
  for (const JoinedRows& joined : rows_of_module(name, architecture_)) {
    if (means_experts(name, joined)) of_experts_.emplace(written);
  }
  for (std::string& item : items) add_item(std::move(item), name.layer);
  return std::nullopt;
}

std::optional<std::string> AdapterTargets::exclude(std::string_view written) {
  const ModuleName name = module_name(written);
  std::vector<std::string> items;
  if (auto problem = find(name, written, items)) return problem;
  for (const std::string& item : items) {
    if (!name.layer) {
      std::erase_if(items_, [&](const Item& one) { return one.layers == item; });
    } else if (std::ranges::count(items_, item, &Item::layers) > 0) {
      not_excluded_[item].insert(*name.layer);
    }
  }
  return std::nullopt;
}

void AdapterTargets::add_all() {
  const std::vector<JoinedRows> joined = joined_rows(architecture_);
  for (const TableGroup& group : table_.groups) {
    for (const TableRow& row : group.rows) {
      const bool is_dense = row.weights > 0 && row.macs > 0;
      if (is_dense && row.used_weights < 1) of_experts_.emplace("all-linear");
      const bool is_of_choice = row.name == "router" || row.name == "shared_expert_gate";
      if (group.name.empty() || !is_dense || row.used_weights < 1 || is_of_choice) continue;
      const auto with =
          std::ranges::find_if(joined, [&](const JoinedRows& rows) { return std::ranges::count(rows, row.name) > 0; });
      std::vector<std::string> rows;
      for (const std::string_view one : with == joined.end() ? JoinedRows{row.name} : *with) {
        if (has_row(one)) rows.emplace_back(one);
      }
      add_item(item_of(rows), std::nullopt);
    }
  }
}

std::string AdapterTargets::why_empty() const {
  if (of_experts_.empty()) return "names no layer";
  return fmt::format(
      "{} {} of experts only, whose adapters are not modelled; name layers that all tokens use, too: those of "
      "attention",
      fmt::join(of_experts_, ", "), of_experts_.size() == 1 ? "is" : "are");
}

std::vector<std::string> AdapterTargets::layers() const {
  std::vector<std::string> all;
  for (const Item& item : items_) all.push_back(item.layers);
  return all;
}

std::optional<std::string> AdapterTargets::difference(std::string_view key, std::string_view what,
                                                      const std::set<std::int64_t>& some) const {
  const auto count = static_cast<std::int64_t>(some.size());
  if (count >= blocks()) return std::nullopt;
  return fmt::format(
      "{}: {} of {} layers have adapters{}{}, and here all: more parameters learn, and gradients go down to the first",
      key, count, blocks(), what.empty() ? "" : " for ", what);
}

std::vector<std::string> AdapterTargets::differences(std::string_view key) const {
  std::vector<std::string> all;
  for (const std::string& name : of_experts_) all.push_back(fmt::format("{}: adapters of experts", name));
  for (const Item& item : items_) {
    if (item.is_everywhere) continue;
    if (auto sentence = difference(key, item.layers, item.blocks)) all.push_back(std::move(*sentence));
  }
  for (const auto& [layers, some] : not_excluded_) {
    all.push_back(fmt::format("exclude_modules: {} of {} layers have no adapters for {}, and here all have",
                              some.size(), blocks(), layers));
  }
  return all;
}

Adapters read_adapter_config(const std::filesystem::path& file, const ModelTable& table, std::string_view architecture,
                             std::vector<std::string>& left_out) {
  const InputFile input(file);
  const JsonValue document = read_json(input);
  return AdapterConfig(document, input.name()).read(table, architecture, left_out);
}

}  // namespace tandem
