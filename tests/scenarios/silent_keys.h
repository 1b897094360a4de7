// Runs scenarios again with other values of single keys, to find keys that change nothing and say nothing.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/timeline.h"
#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// The result of a run, as far as a key may change it.
struct Answer {  // NOLINT(bugprone-exception-escape): without memory, the end
  bool is_refused = false;
  std::string refusal{};
  nlohmann::ordered_json results{};  // of the report, without its notes and without what it repeats of the scenario
  std::vector<std::string> notes{};
  std::set<std::string> consulted{};

  // Returns whether a note with this opening names the key.
  bool names(const std::string& key, const std::string& opening) const;
};

// What another value of a key does. `wrong`: the results change, although a note says that the key has no effect.
enum class Effect : std::uint8_t { refused, changed, noted, silent, wrong };

class Scenarios {
 public:
  // Runs the scenario in `text`, without the line about its version, with another value of a key, if there is one.
  // Files that it names lie beside the good scenarios.
  Answer run(const std::string& text, const std::string& key = "", const std::string& value = "");

  // Returns whether the scenario has this value already.
  static bool has(const std::string& text, const std::string& key, const std::string& value);
  // Returns what another value of the key does to a scenario whose run gave the answer `before`.
  Effect effect(const std::string& text, const Answer& before, const std::string& key, const std::string& value);

 private:
  static bool differ(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

  SharedParts parts_;
};

}  // namespace tandem
