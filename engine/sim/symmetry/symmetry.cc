#include "engine/sim/symmetry/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::sim::symmetry {
namespace {

// Each run except the last finds a difference. No scenario was seen to gain from as many runs as this.
constexpr int kMostRuns = 32;

}  // namespace

Symmetry::Symmetry(const EngineOptions& options)
    : classes_(options), blocks_(options), patterns_(*options.topology, classes_, faulty_links(options)) {
  if (!classes_.saves_work()) classes_.separate();
}

bool Symmetry::is_possible(const EngineOptions& options) {
  return !options.alike.empty() && options.values.value_or(ValueMode::none) == ValueMode::none &&
         options.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid &&
         !options.schedule_seed && !options.topology->facts().exchanges_in_turn &&
         options.topology->facts().share_spread <= 0 && (!options.faults || options.faults->jitter.empty());
}

bool Symmetry::begin_run() {
  // Their images are the old ones.
  if (!splits_.empty() || shrinks_blocks_ || separates_workers_) patterns_.clear();
  if (std::exchange(shrinks_blocks_, false)) blocks_.shrink();
  for (const auto& [index, parts, members_differ] : splits_) classes_.split(index, parts, members_differ);
  if (!splits_.empty() && !classes_.saves_work()) {
    separate_workers(fmt::format("{}, so that at most {} workers are alike", why_, classes_.few_alike()));
  }
  splits_.clear();
  if (std::exchange(separates_workers_, false)) classes_.separate();
  if (is_on_ && runs_++ == kMostRuns) turn_off(fmt::format("{} runs found more differences each", kMostRuns));
  return is_on_ && (classes_.saves_work() || blocks_.size() > 1);
}

void Symmetry::separate_workers(const std::string& why) {
  separates_workers_ = true;
  note_ = "every worker was simulated: " + why;
}

void Symmetry::turn_off(const std::string& why) {
  if (!is_on_) return;
  is_on_ = false;
  if (!why.empty()) note_ = "every worker was simulated: " + why;
}

void Symmetry::split(int index, std::vector<std::uint32_t> part_of_member) {
  splits_.push_back({index, std::move(part_of_member), false});
  why_ = "workers share links with different others";
}

void Symmetry::split_between(const std::vector<int>& classes, std::span<const std::uint32_t> part_of_running,
                             const std::string& why) {
  const std::vector<int> running = classes_.running_members(classes.front());
  std::uint32_t parts = *std::ranges::max_element(part_of_running) + 1;
  std::vector<std::uint32_t> part_of_member(static_cast<std::size_t>(classes_.size(classes.front())));
  const auto member = [&](std::size_t i) { return part_of_member.begin() + running[i]; };
  for (std::size_t i = 0; i < running.size(); ++i) {
    *member(i) = part_of_running[i];
    if (i == 0) continue;
    const bool is_same = part_of_running[i] == part_of_running[i - 1];
    std::fill(member(i - 1) + 1, member(i), is_same ? part_of_running[i] : parts++);
  }
  for (const int index : classes) splits_.push_back({index, part_of_member, true});
  why_ = why;
}

}  // namespace tandem::sim::symmetry
