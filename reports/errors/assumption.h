// Figures that nobody measured or stated, and how far a simulated step depends on them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

class JsonField;

struct Assumption {
  std::string figure{};  // "sustained of 'NVIDIA H100 SXM5'"
  std::string value{};   // that of the simulation, "0.87"
  std::string source{};  // on what it rests; may be empty
  // The range that it may have, and the mean times of a step with its two ends.
  std::string from{}, to{};
  Nanoseconds step_from = 0, step_to = 0;

  bool operator==(const Assumption&) const = default;
};

nlohmann::ordered_json assumptions_to_json(const std::vector<Assumption>& assumptions);
std::vector<Assumption> assumptions_from_json(const JsonField& list);

// Says which of them move a step most: a line for each, below a heading. Empty where there are none.
std::string assumptions_text(const std::vector<Assumption>& assumptions, Nanoseconds step);

}  // namespace tandem
