#include "reports/blame/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "reports/base/statistics.h"

namespace tandem {
namespace {

// Two workers that exchange data, by how: for each kind of exchange the ops of the first and of the second.
using Exchanges = std::map<std::pair<int, int>, std::vector<std::pair<int, int>>>;  // by the kinds of both ops
struct Edge {
  int from = 0, to = 0;
  Exchanges exchanges{};

  std::pair<std::size_t, std::size_t> evidence() const {
    std::size_t count = 0;
    for (const auto& [kinds, pairs] : exchanges) count += pairs.size();
    return {exchanges.size(), count};
  }
};

// Large groups are seen from their first member only: with all pairs there would be too many.
std::vector<Edge> edges_of(const RecordedJob& job) {
  std::map<std::pair<int, int>, Exchanges> found;
  for (const std::vector<int>& group : job.groups) {
    for (std::size_t i = 1; i < group.size(); ++i) {
      int first = group.front(), second = group[i];
      const auto worker = [&](int op) { return job.ops[static_cast<std::size_t>(op)].worker; };
      const auto alike = [&](int op) { return job.ops[static_cast<std::size_t>(op)].alike; };
      if (worker(first) == worker(second)) continue;
      if (worker(first) > worker(second)) std::swap(first, second);
      found[{worker(first), worker(second)}][{alike(first), alike(second)}].emplace_back(first, second);
    }
  }
  std::vector<Edge> edges;
  for (auto& [workers, exchanges] : found) edges.push_back({workers.first, workers.second, std::move(exchanges)});
  // The best evidence is used first: more kinds of exchange, then more of them.
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.evidence() > b.evidence(); });
  return edges;
}

// Keeps the edges that join all workers that any edges join, without circles.
std::vector<Edge> spanning(std::vector<Edge> edges, std::size_t workers) {
  std::vector<int> root(workers);
  std::iota(root.begin(), root.end(), 0);
  const auto root_of = [&](int worker) {
    while (root[static_cast<std::size_t>(worker)] != worker) worker = root[static_cast<std::size_t>(worker)];
    return worker;
  };
  std::vector<Edge> kept;
  for (Edge& edge : edges) {
    const int from = root_of(edge.from), to = root_of(edge.to);
    if (from == to) continue;
    root[static_cast<std::size_t>(std::max(from, to))] = std::min(from, to);
    kept.push_back(std::move(edge));
  }
  return kept;
}

// When an op was recorded by the clock of its worker; NaN: it was not.
struct Lasting {
  double start_s = 0, end_s = 0;
};
Lasting lasting_of(const RecordedJob& job, int op, std::size_t step) {
  const std::size_t at = job.at(static_cast<std::size_t>(op), step);
  return {job.start_s[at], job.start_s[at] + job.duration_s[at]};
}

// By how much the clock of the second worker of an edge may be ahead of that of the first: nothing that is exchanged
// ends before the other side has started, except sends.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();

  double nearest(double value) const {
    if (least > most) return (least + most) / 2;
    return std::clamp(value, least, most);
  }
};

// What the ends of all kinds of exchange say: nothing unless they agree on the sign; else their median, of two in the
// middle the lesser, because some kinds end later on a slower worker.
double agreed(std::vector<double> of_kinds) {
  if (of_kinds.empty()) return 0;
  std::sort(of_kinds.begin(), of_kinds.end());
  if (of_kinds.front() > 0) return of_kinds[(of_kinds.size() - 1) / 2];
  return of_kinds.back() < 0 ? of_kinds[of_kinds.size() / 2] : 0;
}

// Returns by how much the clock of the second worker is ahead of that of the first.
double clock_difference(const RecordedJob& job, const Edge& edge, std::size_t step) {
  Bounds bounds;
  std::vector<double> of_kinds;
  for (const auto& [kinds, pairs] : edge.exchanges) {
    const bool first_sends = job.alikes[static_cast<std::size_t>(kinds.first)].is_send;
    const bool second_sends = job.alikes[static_cast<std::size_t>(kinds.second)].is_send;
    std::vector<double> differences;
    for (const auto& [first, second] : pairs) {
      const Lasting one = lasting_of(job, first, step), other = lasting_of(job, second, step);
      if (std::isnan(one.end_s + other.end_s)) continue;
      differences.push_back(other.end_s - one.end_s);
      if (!first_sends) bounds.least = std::max(bounds.least, other.start_s - one.end_s);
      if (!second_sends) bounds.most = std::min(bounds.most, other.end_s - one.start_s);
    }
    if (!differences.empty()) of_kinds.push_back(median_of(std::move(differences)));
  }
  return bounds.nearest(agreed(std::move(of_kinds)));
}

struct Clocks {
  std::vector<double> ahead_s{};  // of the clock of its set's first worker
  std::vector<int> set_of{};      // by worker: those that exchanges join to each other are a set
  int sets = 0;

  // How far clocks of a set are apart.
  double apart_s() const {
    std::vector<double> least(static_cast<std::size_t>(sets), 0), most = least;  // the first worker's is 0
    for (std::size_t worker = 0; worker < ahead_s.size(); ++worker) {
      const auto set = static_cast<std::size_t>(set_of[worker]);
      least[set] = std::min(least[set], ahead_s[worker]);
      most[set] = std::max(most[set], ahead_s[worker]);
    }
    double apart = 0;
    for (std::size_t set = 0; set < least.size(); ++set) apart = std::max(apart, most[set] - least[set]);
    return apart;
  }
};

Clocks clocks_in(const RecordedJob& job, const std::vector<Edge>& edges, std::size_t step) {
  std::vector<std::vector<std::pair<int, double>>> next(job.workers.size());
  for (const Edge& edge : edges) {
    const double ahead = clock_difference(job, edge, step);
    next[static_cast<std::size_t>(edge.from)].emplace_back(edge.to, ahead);
    next[static_cast<std::size_t>(edge.to)].emplace_back(edge.from, -ahead);
  }
  Clocks found{.ahead_s = std::vector<double>(job.workers.size(), kNotRecorded),
               .set_of = std::vector<int>(job.workers.size(), 0)};
  std::vector<double>& clocks = found.ahead_s;
  std::vector<int> reached;
  for (std::size_t first = 0; first < clocks.size(); ++first) {
    if (!std::isnan(clocks[first])) continue;
    clocks[first] = 0;
    found.set_of[first] = found.sets;
    reached.assign(1, static_cast<int>(first));
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto worker = static_cast<std::size_t>(reached[i]);
      for (const auto& [other, ahead] : next[worker]) {
        double& clock = clocks[static_cast<std::size_t>(other)];
        if (!std::isnan(clock)) continue;
        clock = clocks[worker] + ahead;
        found.set_of[static_cast<std::size_t>(other)] = found.sets;
        reached.push_back(other);
      }
    }
    ++found.sets;
  }
  return found;
}

// Nothing says how the clocks of workers that exchange nothing differ: all sets are taken to begin a step together.
void begin_together(const RecordedJob& job, std::size_t step, Clocks& clocks) {
  std::vector<double> begin(static_cast<std::size_t>(clocks.sets), std::numeric_limits<double>::infinity());
  for (std::size_t op = 0; op < job.ops.size(); ++op) {
    const auto worker = static_cast<std::size_t>(job.ops[op].worker);
    double& first = begin[static_cast<std::size_t>(clocks.set_of[worker])];
    first = std::fmin(first, job.start_s[job.at(op, step)] - clocks.ahead_s[worker]);
  }
  for (std::size_t worker = 0; worker < clocks.ahead_s.size(); ++worker) {
    const double first = begin[static_cast<std::size_t>(clocks.set_of[worker])];
    if (std::isfinite(first)) clocks.ahead_s[worker] += first;
  }
}

}  // namespace

double align_clocks(RecordedJob& job) {
  const std::vector<Edge> edges = spanning(edges_of(job), job.workers.size());
  double most = 0;
  int sets = 1;
  for (std::size_t step = 0; step < job.steps.size(); ++step) {
    Clocks clocks = clocks_in(job, edges, step);
    most = std::max(most, clocks.apart_s());
    sets = clocks.sets;
    if (sets > 1) begin_together(job, step, clocks);
    for (std::size_t op = 0; op < job.ops.size(); ++op) {
      job.start_s[job.at(op, step)] -= clocks.ahead_s[static_cast<std::size_t>(job.ops[op].worker)];
    }
  }
  if (sets > 1) {
    job.notes.push_back(
        fmt::format("{} sets of ranks exchange nothing with each other: their clocks are taken to agree "
                    "at the beginning of each step",
                    sets));
  }
  return most;
}

}  // namespace tandem
