// Keys of scenarios that one strategy alone reads: `strategy: {name: mine, period: 8}`.
//
// A strategy declares them when it is registered. Scenarios then read, check, sweep and describe them like all other
// keys, and the strategy's factory gets their values.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topologies/base/units.h"

namespace tandem {

using StrategyValue = std::variant<std::int64_t, double, bool, std::string>;

struct StrategyKey {
  enum class Kind : std::uint8_t { count, number, quantity, boolean, choice, text };

  std::string name;     // lower-case letters, digits and underscores: "period"
  std::string meaning;  // a line for people: "Steps between two averages."
  Kind kind = Kind::count;
  StrategyValue usual{};               // where a scenario does not give the key
  double least = 0;                    // of counts, numbers, and quantities in their base unit; included
  double most = 0;                     // likewise
  Dimension dimension{};               // of quantities
  std::vector<std::string> choices{};  // of choices
};

// Make keys. A count is a whole number; quantities are given as in "25MB" and arrive in the base unit of units.h.
StrategyKey count_key(std::string name, std::int64_t usual, std::int64_t least, std::int64_t most, std::string meaning);
StrategyKey number_key(std::string name, double usual, double least, double most, std::string meaning);
StrategyKey quantity_key(std::string name, Dimension dimension, double usual, double least, double most,
                         std::string meaning);
StrategyKey switch_key(std::string name, bool usual, std::string meaning);
StrategyKey choice_key(std::string name, std::string usual, std::vector<std::string> choices, std::string meaning);
StrategyKey text_key(std::string name, std::string usual, std::string meaning);

// Returns what is wrong with a declared key or with a value of it; "" if nothing is.
std::string problem_of(const StrategyKey& key);
std::string problem_of(const StrategyKey& key, const StrategyValue& value);

// Values of a strategy's own keys, by name. Asking for a key that the strategy has not declared, or in another kind, is
// a ValueError.
class StrategyValues {
 public:
  StrategyValues() = default;
  explicit StrategyValues(std::map<std::string, StrategyValue, std::less<>> values) : values_(std::move(values)) {}

  std::int64_t count(std::string_view name) const;
  double number(std::string_view name) const;            // also of quantities
  bool is_on(std::string_view name) const;               // of switches
  const std::string& text(std::string_view name) const;  // also of choices

  void set(const std::string& name, StrategyValue value) { values_.insert_or_assign(name, std::move(value)); }
  const std::map<std::string, StrategyValue, std::less<>>& all() const { return values_; }

 private:
  template <typename Value>
  const Value& get(std::string_view name, std::string_view kind) const;

  std::map<std::string, StrategyValue, std::less<>> values_;
};

// Returns a value for every key: the given one, else the usual one. ValueError for a value of no key, and for one that
// the key does not allow.
StrategyValues with_usual_values(const std::string& strategy, const std::vector<StrategyKey>& keys,
                                 const StrategyValues& given);

// The keys of `strategy:` that every scenario knows, which no strategy can declare.
const std::vector<std::string>& common_strategy_keys();

std::string value_text(const StrategyValue& value);  // "8", "0.01", "true"

}  // namespace tandem
