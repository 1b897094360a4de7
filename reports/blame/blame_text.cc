#include "reports/blame/blame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/base/text_table.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

constexpr double kNanosecond_s = 1e-9;

std::string length_text(double seconds) {
  return time_text(seconds / kNanosecond_s);
}

std::string slowdown_text(double slowdown) {
  return fmt::format("{:.3f}", slowdown);
}

std::string number_of(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// How much longer the steps were than their replay.
std::string recorded_text(const Blame& blame) {
  constexpr double kLeast = 0.0005;
  const double more = blame.launch_slowdown - 1;
  const std::string time = length_text(blame.recorded_s);
  if (std::abs(more) < kLeast) return fmt::format("recorded {}: ops began as soon as they could\n", time);
  if (more < 0) {
    return fmt::format("recorded {}, {} less: ops began before those for which they should wait had ended\n", time,
                       percent_text(-more));
  }
  return fmt::format("recorded {}, {} more: ops began later than they could\n", time, percent_text(more));
}

std::string heading_of(const Blame& blame) {
  std::string text = fmt::format("{}: {} of {} ({} x {}), {}\n", shown(blame.name), number_of(blame.ops, "op"),
                                 number_of(blame.workers.size(), "worker"), number_of(blame.replicas, "DP rank"),
                                 number_of(blame.stages, "stage"), number_of(blame.steps.size(), "step"));
  text += fmt::format("slowdown {}: a step takes {}, and would take {} if all ops of a kind took equally long\n",
                      slowdown_text(blame.slowdown), length_text(blame.replayed_s), length_text(blame.ideal_s));
  text += recorded_text(blame);
  constexpr double kLeastClocks_s = 1e-4;
  if (blame.clocks_s >= kLeastClocks_s) {
    text += fmt::format("the clocks of ranks were up to {} apart, which is removed\n", length_text(blame.clocks_s));
  }
  return text;
}

std::string blamed_text(std::string_view what, const std::vector<BlamedPart>& parts, bool all) {
  std::vector<const BlamedPart*> ordered;
  for (const BlamedPart& part : parts) ordered.push_back(&part);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const BlamedPart* a, const BlamedPart* b) { return a->slowdown > b->slowdown; });
  const ShownRows rows = all ? ShownRows{.count = ordered.size(), .more = ""} : shown_rows(ordered.size(), "--all");
  TextTable table;
  table.add({std::string(what), "slowdown"});
  table.add_rule();
  for (std::size_t i = 0; i < rows.count; ++i) table.add({ordered[i]->name, slowdown_text(ordered[i]->slowdown)});
  return "\n" + table.text() + rows.more;
}

std::string steps_text(const Blame& blame, bool all) {
  std::vector<BlamedPart> steps;
  for (std::size_t i = 0; i < blame.steps.size(); ++i) {
    steps.push_back({.name = fmt::format("step {}", blame.steps[i]), .slowdown = blame.step_slowdowns[i]});
  }
  return blamed_text("by step", steps, all);
}

double slowdown_of(const Blame& blame, std::size_t replica, std::size_t stage) {
  return blame.by_worker[replica * blame.stages + stage];
}

// Numbers where they fit, else a character for each worker.
std::string heat_map_text(const Blame& blame) {
  constexpr std::size_t kMostNumbers = 12, kInRow = 64;
  if (blame.workers.size() == 1) return "";
  std::string text = "\nslowdown by worker (the lesser of those of its stage and its DP rank)\n";
  if (blame.replicas <= kMostNumbers) {
    TextTable table;
    std::vector<std::string> cells = {"DP rank"};
    for (std::size_t replica = 0; replica < blame.replicas; ++replica) cells.push_back(std::to_string(replica));
    table.add(cells);
    table.add_rule();
    for (std::size_t stage = 0; stage < blame.stages; ++stage) {
      cells = {fmt::format("stage {}", stage)};
      for (std::size_t replica = 0; replica < blame.replicas; ++replica) {
        cells.push_back(fmt::format("{:.2f}", slowdown_of(blame, replica, stage)));
      }
      table.add(cells);
    }
    return text + table.text();
  }
  constexpr std::string_view kShades = ".:-=+*#%@";
  const double most = std::max(1.0, *std::max_element(blame.by_worker.begin(), blame.by_worker.end()));
  const auto shade = [&](double slowdown) {
    const double share = most > 1 ? std::clamp((slowdown - 1) / (most - 1), 0.0, 1.0) : 0;
    return kShades[static_cast<std::size_t>(std::lround(share * static_cast<double>(kShades.size() - 1)))];
  };
  for (std::size_t begin = 0; begin < blame.replicas; begin += kInRow) {
    const std::size_t end = std::min(blame.replicas, begin + kInRow);
    text += fmt::format("DP ranks {} to {}\n", begin, end - 1);
    for (std::size_t stage = 0; stage < blame.stages; ++stage) {
      text += fmt::format("  stage {:<4}", stage);
      for (std::size_t replica = begin; replica < end; ++replica) text += shade(slowdown_of(blame, replica, stage));
      text += "\n";
    }
  }
  return text + fmt::format("  '.' is 1 or less, '@' is {}\n", slowdown_text(most));
}

std::string path_text(const Blame& blame, bool all) {
  const ShownRows rows =
      all ? ShownRows{.count = blame.path.size(), .more = ""} : shown_rows(blame.path.size(), "--all");
  TextTable table(2);
  table.add({"critical path", "", "of a step", ""});
  table.add_rule();
  for (std::size_t i = 0; i < rows.count; ++i) {
    const BlamedPath& part = blame.path[i];
    table.add({worker_text(blame.workers[static_cast<std::size_t>(part.worker)]), part.type, length_text(part.step_s),
               blame.replayed_s > 0 ? percent_text(part.step_s / blame.replayed_s) : "-"});
  }
  return "\n" + table.text() + rows.more;
}

std::string fixes_text(const Blame& blame) {
  TextTable table;
  table.add({"if it took its ideal time", "a step", "of the slowdown"});
  table.add_rule();
  for (const Fix& fix : blame.fixes) table.add({fix.what, length_text(fix.step_s), percent_text(fix.share)});
  return "\n" + table.text();
}

}  // namespace

std::string worker_text(const RecordedWorker& worker) {
  return fmt::format("rank {} (DP rank {}, stage {})", worker.rank, worker.replica, worker.stage);
}

std::string blame_text(const Blame& blame, bool all) {
  std::string text = heading_of(blame);
  for (const std::string& note : blame.notes) text += shown(note) + "\n";
  if (blame.stages > 1) text += blamed_text("by stage", blame.by_stage, all);
  if (blame.replicas > 1) text += blamed_text("by DP rank", blame.by_replica, all);
  text += blamed_text("by type of op", blame.by_type, all);
  if (blame.steps.size() > 1) text += steps_text(blame, all);
  return text + heat_map_text(blame) + path_text(blame, all) + fixes_text(blame);
}

}  // namespace tandem
