// The measured and the simulated step of a comparison, each stream above its counterpart, and how far their ops differ.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"
#include "reports/pages/sections.h"
#include "reports/run/report_text.h"

namespace tandem::pages {
namespace {

using StreamKey = std::pair<std::string, int>;  // device, stream

StreamKey key_of(const StepLane& lane) {
  return {lane.device, lane.stream};
}

// Both steps in one picture: first the lanes of streams that both have, then the others.
class PairedPicture {
 public:
  PairedPicture(const StepPicture& measured, const StepPicture& simulated) {
    std::map<StreamKey, std::size_t> places;
    for (std::size_t i = 0; i < simulated.lanes.size(); ++i) places.emplace(key_of(simulated.lanes[i]), i);
    std::vector<int> of_measured(measured.lanes.size()), of_simulated(simulated.lanes.size(), kNone);
    for (std::size_t i = 0; i < measured.lanes.size(); ++i) {
      of_measured[i] = add(measured.lanes[i], "");
      const auto same = places.find(key_of(measured.lanes[i]));
      if (same != places.end()) of_simulated[same->second] = add(simulated.lanes[same->second], "simulated");
    }
    for (std::size_t i = 0; i < of_simulated.size(); ++i) {
      if (of_simulated[i] == kNone) of_simulated[i] = add(simulated.lanes[i], "simulated only");
    }
    add_stretches(measured, of_measured);
    add_stretches(simulated, of_simulated);
    picture_.length = measured.length;
  }

  const StepPicture& picture() const { return picture_; }

 private:
  static constexpr int kNone = -1;

  int add(const StepLane& lane, const char* label) {
    picture_.lanes.push_back(lane);
    picture_.lanes.back().label = label;
    return static_cast<int>(picture_.lanes.size()) - 1;
  }

  void add_stretches(const StepPicture& from, const std::vector<int>& lanes) {
    for (CriticalStretch stretch : from.critical_stretches) {
      stretch.lane = lanes.at(static_cast<std::size_t>(stretch.lane));
      picture_.critical_stretches.push_back(stretch);
    }
  }

  StepPicture picture_;
};

// The n-th op of a name on a stream, in both steps.
struct PairedOp {
  const StepLane* lane;
  const StepBar* measured;
  const StepBar* simulated;

  Nanoseconds difference() const { return (simulated->end - simulated->start) - (measured->end - measured->start); }
};

std::vector<PairedOp> paired_ops(const StepPicture& measured, const StepPicture& simulated) {
  std::vector<PairedOp> ops;
  for (const StepLane& lane : measured.lanes) {
    const auto same = std::ranges::find(simulated.lanes, key_of(lane), key_of);
    if (same == simulated.lanes.end()) continue;
    std::map<std::string, std::vector<const StepBar*>> by_name;
    for (const StepBar& bar : same->bars) by_name[bar.name].push_back(&bar);
    std::map<std::string, std::size_t> seen;
    for (const StepBar& bar : lane.bars) {
      const std::vector<const StepBar*>& others = by_name[bar.name];
      const std::size_t place = seen[bar.name]++;
      if (place < others.size()) ops.push_back({.lane = &lane, .measured = &bar, .simulated = others[place]});
    }
  }
  return ops;
}

// Returns the ops of each name and stream together, the largest difference first.
std::string names_table(const std::vector<PairedOp>& ops, Nanoseconds step) {
  struct Sum {
    int count = 0;
    Nanoseconds measured = 0, simulated = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const PairedOp& op : ops) {
    Sum& sum = sums[{op.measured->name, stream_label(*op.lane)}];
    ++sum.count;
    sum.measured += op.measured->end - op.measured->start;
    sum.simulated += op.simulated->end - op.simulated->start;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::greater{},
                           [](const auto& one) { return std::abs(one.second.simulated - one.second.measured); });
  constexpr std::size_t kMost = 12;
  HtmlTable table(sorted.size() > kMost ? fmt::format("the {} largest differences of {}", kMost, sorted.size())
                                        : "the differences by op",
                  {"op", "stream", "ops", "measured", "simulated", "difference", "of the step"}, 2);
  for (std::size_t i = 0; i < std::min(sorted.size(), kMost); ++i) {
    const auto& [key, sum] = sorted[i];
    const Nanoseconds difference = sum.simulated - sum.measured;
    table.add({key.first, key.second, std::to_string(sum.count), time_text(sum.measured), time_text(sum.simulated),
               signed_time_text(difference), error_text(static_cast<double>(difference) / static_cast<double>(step))});
  }
  return std::move(table).finish();
}

std::string ops_table(std::vector<PairedOp> ops) {
  constexpr std::size_t kMost = 200;
  const std::size_t all = ops.size();
  std::ranges::stable_sort(ops, std::greater{}, [](const PairedOp& op) { return std::abs(op.difference()); });
  ops.resize(std::min(all, kMost));
  std::ranges::stable_sort(ops, {}, [](const PairedOp& op) { return op.measured->start; });
  HtmlTable table(all > kMost ? fmt::format("the {} ops of {} that differ most", kMost, all) : "each op",
                  {"op", "stream", "begins, measured", "simulated", "takes, measured", "simulated", "difference"}, 2);
  for (const PairedOp& op : ops) {
    table.add({op.measured->name, stream_label(*op.lane), time_text(op.measured->start), time_text(op.simulated->start),
               time_text(op.measured->end - op.measured->start), time_text(op.simulated->end - op.simulated->start),
               signed_time_text(op.difference())});
  }
  return folded("Op by op", std::move(table).finish());
}

}  // namespace

std::string paired_steps_section(RunDetails measured, RunDetails simulated) {
  // Two of them are as large as one of a run.
  for (StepPicture* picture : {&measured.median_step, &simulated.median_step}) make_coarse(*picture, kMostBars / 2);
  const StepPicture &was = measured.median_step, &is = simulated.median_step;
  const std::vector<PairedOp> ops = paired_ops(was, is);
  std::string text = gantt("Timelines of the median steps, measured, and simulated below each stream",
                           PairedPicture(was, is).picture(), std::max(was.length, is.length));
  if (!ops.empty()) text += names_table(ops, was.length) + ops_table(ops);
  text += "<h3>measured</h3>\n" + gantt_tables(was) + "<h3>simulated</h3>\n" + gantt_tables(is);
  return section("The median steps", text);
}

}  // namespace tandem::pages
