#include "engine/sim/collectives/steps/rehearsal.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace tandem::sim::steps {
namespace {

constexpr int kMostRehearsals = 8;
constexpr double kClose = 1e-3, kEqual = 1e-5;
// Steps cost no more than this, as a multiple of the mechanism's constants; what a plan has beyond that, as where one
// process issues the work of many GPUs, passes before the first.
constexpr double kMostFactor = 4;

// What ends: the copy of a transfer or, later, its latency. In the order of dates, then of their beginnings.
using Ending = std::tuple<double, std::size_t, int, bool>;  // date, number, transfer, whether it has been sent before

}  // namespace

double rehearse(const StepGraph& graph) {
  StepProgress progress(graph);
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  std::vector<int> starting;
  std::size_t number = 0;
  double now_s = 0;
  const auto start = [&] {
    for (const int transfer : starting) {
      endings.emplace(now_s + graph.transfer(transfer).copy_s, number++, transfer, false);
    }
    starting.clear();
  };
  for (int gpu = 0; gpu < graph.gpus; ++gpu) progress.come(gpu, starting);
  start();
  while (!endings.empty()) {
    const auto [date_s, order, transfer, was_sent] = endings.top();
    endings.pop();
    now_s = date_s;
    if (was_sent) {
      progress.arrived(transfer, starting);
    } else {
      progress.sent(transfer, starting);
      endings.emplace(now_s + graph.latency_s(transfer), number++, transfer, true);
    }
    start();
  }
  return now_s;
}

// Narrows down the factor from both sides by straight lines. The time hardly ever falls as it rises: only where other
// transfers then come first at an edge.
void fit_steps(StepGraph& graph, double seconds) {
  const double inside_s = graph.inside_s, network_s = graph.network_s;
  const auto with = [&](double factor) {
    graph.inside_s = factor * inside_s;
    graph.network_s = factor * network_s;
    return rehearse(graph);
  };
  double low = 0, high = kMostFactor;
  double low_s = with(low), high_s = 0;
  double tried = 1;
  for (int i = 0; i < kMostRehearsals && seconds - low_s > kClose * seconds && tried > low; ++i) {
    const double found_s = with(tried);
    if (found_s <= (1 + kEqual) * seconds) {
      low = tried;
      low_s = found_s;
    } else {
      high = tried;
      high_s = found_s;
    }
    const double line = high_s > 0 ? low + (high - low) * (seconds - low_s) / (high_s - low_s) : 2 * tried;
    tried = std::min(line, kMostFactor);
  }
  graph.inside_s = low * inside_s;
  graph.network_s = low * network_s;
  graph.lead_s += std::max(0.0, seconds - low_s);
}

}  // namespace tandem::sim::steps
