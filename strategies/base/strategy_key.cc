#include "strategies/base/strategy_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

using Kind = StrategyKey::Kind;

bool is_key_name(std::string_view name) {
  const auto may_be_in = [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '_';
  };
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), may_be_in);
}

// Returns the number of a value of a key with a range.
double number_of(const StrategyValue& value) {
  const auto* count = std::get_if<std::int64_t>(&value);
  return count != nullptr ? static_cast<double>(*count) : std::get<double>(value);
}

bool has_kind(const StrategyValue& value, Kind kind) {
  switch (kind) {
    case Kind::count:
      return std::holds_alternative<std::int64_t>(value);
    case Kind::number:
    case Kind::quantity:
      return std::holds_alternative<double>(value);
    case Kind::boolean:
      return std::holds_alternative<bool>(value);
    case Kind::choice:
    case Kind::text:
      return std::holds_alternative<std::string>(value);
  }
  TANDEM_UNREACHABLE("a StrategyKey::Kind outside its enumerators");
}

bool has_range(Kind kind) {
  return kind == Kind::count || kind == Kind::number || kind == Kind::quantity;
}

StrategyKey ranged_key(std::string name, Kind kind, StrategyValue usual, double least, double most,
                       std::string meaning) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .kind = kind,
          .usual = std::move(usual),
          .least = least,
          .most = most};
}

}  // namespace

StrategyKey count_key(std::string name, std::int64_t usual, std::int64_t least, std::int64_t most,
                      std::string meaning) {
  return ranged_key(std::move(name), Kind::count, usual, static_cast<double>(least), static_cast<double>(most),
                    std::move(meaning));
}

StrategyKey number_key(std::string name, double usual, double least, double most, std::string meaning) {
  return ranged_key(std::move(name), Kind::number, usual, least, most, std::move(meaning));
}

StrategyKey quantity_key(std::string name, Dimension dimension, double usual, double least, double most,
                         std::string meaning) {
  StrategyKey key = ranged_key(std::move(name), Kind::quantity, usual, least, most, std::move(meaning));
  key.dimension = dimension;
  return key;
}

StrategyKey switch_key(std::string name, bool usual, std::string meaning) {
  return {.name = std::move(name), .meaning = std::move(meaning), .kind = Kind::boolean, .usual = usual};
}

StrategyKey choice_key(std::string name, std::string usual, std::vector<std::string> choices, std::string meaning) {
  StrategyKey key = text_key(std::move(name), std::move(usual), std::move(meaning));
  key.kind = Kind::choice;
  key.choices = std::move(choices);
  return key;
}

StrategyKey text_key(std::string name, std::string usual, std::string meaning) {
  return {.name = std::move(name), .meaning = std::move(meaning), .kind = Kind::text, .usual = std::move(usual)};
}

std::string problem_of(const StrategyKey& key) {
  if (!is_key_name(key.name)) {
    return fmt::format("key '{}' must have a name of lower-case letters, digits and underscores", key.name);
  }
  const std::vector<std::string>& common = common_strategy_keys();
  if (std::find(common.begin(), common.end(), key.name) != common.end()) {
    return fmt::format("key '{}' is a key of every scenario's strategy; choose another name", key.name);
  }
  if (key.kind == Kind::choice && key.choices.empty()) return fmt::format("key '{}' has no choices", key.name);
  const std::string problem = problem_of(key, key.usual);
  return problem.empty() ? "" : "the usual value: " + problem;
}

std::string problem_of(const StrategyKey& key, const StrategyValue& value) {
  if (!has_kind(value, key.kind)) return fmt::format("key '{}' has a value of another kind", key.name);
  if (has_range(key.kind)) {
    const double number = number_of(value);
    if (number >= key.least && number <= key.most) return "";
    return fmt::format("key '{}' must be from {} to {}, found {}", key.name, key.least, key.most, number);
  }
  if (key.kind != Kind::choice) return "";
  const auto& word = std::get<std::string>(value);
  if (std::find(key.choices.begin(), key.choices.end(), word) != key.choices.end()) return "";
  return fmt::format("key '{}' must be one of {}, found '{}'", key.name, fmt::join(key.choices, ", "), word);
}

template <typename Value>
const Value& StrategyValues::get(std::string_view name, std::string_view kind) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::vector<std::string> known;
    for (const auto& [key, value] : values_) known.push_back(key);
    throw ValueError(fmt::format("the strategy has declared no key '{}' (StrategyInfo::keys has: {})", name,
                                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  if (const auto* value = std::get_if<Value>(&found->second)) return *value;
  throw ValueError(fmt::format("key '{}' of the strategy is no {}", name, kind));
}

std::int64_t StrategyValues::count(std::string_view name) const {
  return get<std::int64_t>(name, "count");
}

double StrategyValues::number(std::string_view name) const {
  return get<double>(name, "number");
}

bool StrategyValues::is_on(std::string_view name) const {
  return get<bool>(name, "switch");
}

const std::string& StrategyValues::text(std::string_view name) const {
  return get<std::string>(name, "text");
}

StrategyValues with_usual_values(const std::string& strategy, const std::vector<StrategyKey>& keys,
                                 const StrategyValues& given) {
  StrategyValues values;
  for (const StrategyKey& key : keys) values.set(key.name, key.usual);
  for (const auto& one_given : given.all()) {
    const std::string& name = one_given.first;
    const auto& value = one_given.second;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const StrategyKey& one) { return one.name == name; });
    if (key == keys.end()) throw ValueError(fmt::format("strategy '{}' has no key '{}'", strategy, name));
    const std::string problem = problem_of(*key, value);
    if (!problem.empty()) throw ValueError(fmt::format("strategy '{}': {}", strategy, problem));
    values.set(name, value);
  }
  return values;
}

const std::vector<std::string>& common_strategy_keys() {
  static const std::vector<std::string> kKeys{"name",
                                              "placement",
                                              "updates",
                                              "cross_device_ops",
                                              "num_packs",
                                              "bytes_per_pack",
                                              "micro_batches",
                                              "stage_blocks",
                                              "virtual_stages",
                                              "schedule",
                                              "scatter_gather",
                                              "overlap_gather",
                                              "replicate",
                                              "overlap_experts",
                                              "shard_parameters",
                                              "distributed_optimizer",
                                              "data",
                                              "tensor",
                                              "pipeline",
                                              "context",
                                              "context_exchange",
                                              "axis_order",
                                              "expert",
                                              "expert_tensor",
                                              "overlap_shared_expert"};
  return kKeys;
}

std::string value_text(const StrategyValue& value) {
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  if (const auto* is_on = std::get_if<bool>(&value)) return *is_on ? "true" : "false";
  if (const auto* count = std::get_if<std::int64_t>(&value)) return std::to_string(*count);
  return fmt::format("{}", std::get<double>(value));
}

}  // namespace tandem
