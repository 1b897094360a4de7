#include "engine/sim/symmetry/symmetry.h"

#include <fmt/format.h>

namespace tandem::sim::symmetry {
namespace {

// Each run except the last finds a difference. No scenario was seen to gain from as many runs as this.
constexpr int kMostRuns = 32;

}  // namespace

Symmetry::Symmetry(const EngineOptions& options) : classes_(options), patterns_(*options.topology, classes_) {}

bool Symmetry::is_possible(const EngineOptions& options) {
  return !options.alike.empty() && options.values.value_or(ValueMode::none) == ValueMode::none &&
         options.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid &&
         !options.schedule_seed && !options.topology->exchanges_in_turn() && options.topology->share_spread() <= 0;
}

bool Symmetry::begin_run() {
  if (!splits_.empty()) patterns_.clear();  // their images are for the old classes
  for (const auto& [index, parts] : splits_) classes_.split(index, parts);
  splits_.clear();
  if (is_on_ && runs_++ == kMostRuns) turn_off(fmt::format("{} runs found more differences each", kMostRuns));
  return is_on_ && classes_.saves_work();
}

void Symmetry::turn_off(const std::string& why) {
  if (!is_on_) return;
  is_on_ = false;
  if (!why.empty()) note_ = "every worker was simulated: " + why;
}

void Symmetry::split(int index, std::vector<std::uint32_t> part_of_member) {
  splits_.emplace_back(index, std::move(part_of_member));
}

}  // namespace tandem::sim::symmetry
