#include "engine/sim/processors.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tandem::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kCoreNsPerS = 1e9;
constexpr double kNothingLeftNs = 1e-20;  // less is rounding

}  // namespace

Processors::Processors(std::span<const HostSpec> nodes) {
  for (const HostSpec& spec : nodes) {
    if (index_.size() <= spec.node) index_.resize(std::size_t{spec.node} + 1);
    index_[spec.node] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back().cores = spec.cores;
  }
}

void Processors::add(NodeIndex node, double seconds, double alone_s, Then then) {
  const std::uint32_t index = index_[node];
  Job& job = nodes_[index].jobs.emplace_back();
  job.left_ns = seconds * kCoreNsPerS;
  job.most_ns_per_s = alone_s > seconds ? kCoreNsPerS * seconds / alone_s : kCoreNsPerS;
  job.then = std::move(then);
  mark(index);
}

void Processors::mark(std::uint32_t index) {
  if (std::exchange(nodes_[index].has_changed, true)) return;
  changed_.push_back(index);
}

void Processors::settle(double now_s) {
  for (const std::uint32_t index : changed_) settle(index, now_s);
  changed_.clear();
}

void Processors::settle(std::uint32_t index, double now_s) {
  Node& node = nodes_[index];
  node.has_changed = false;
  ++node.prediction;
  const double passed_s = now_s - std::exchange(node.present_s, now_s);
  if (node.jobs.empty()) return;
  for (Job& job : node.jobs) {
    job.left_ns -= job.ns_per_s * passed_s;  // a new job's rate is 0
    if (job.left_ns < kNothingLeftNs) job.left_ns = 0;
  }
  share(node);
  double next_s = kInfinity;
  for (Job& job : node.jobs) {
    job.end_s = now_s + job.left_ns / job.ns_per_s;
    next_s = std::min(next_s, job.end_s);
  }
  ends_.add(next_s, {index, node.prediction});
}

// Jobs that cannot use an even share of what is left get what they can use, the smallest first.
void Processors::share(Node& node) {
  double left = node.cores * kCoreNsPerS;
  auto sharing = static_cast<double>(node.jobs.size());
  for (Job& job : node.jobs) job.ns_per_s = 0;
  while (sharing > 0) {
    const double even = left / sharing;
    double least = kInfinity;
    for (const Job& job : node.jobs) {
      if (job.ns_per_s == 0) least = std::min(least, job.most_ns_per_s);
    }
    const bool is_last = least >= even;
    for (Job& job : node.jobs) {
      if (job.ns_per_s != 0 || (!is_last && job.most_ns_per_s != least)) continue;
      job.ns_per_s = is_last ? even : least;
      left -= job.ns_per_s;
      --sharing;
    }
  }
}

double Processors::next_end_s() {
  while (!ends_.empty() && is_outdated(ends_.first())) ends_.take_first();
  return ends_.empty() ? kInfinity : ends_.first_date_s();
}

void Processors::take_ended(double now_s, std::vector<Then>& ended) {
  settle(now_s);
  const auto is_due = [now_s](double end_s) { return end_s - now_s < simgrid_compat::kTimingPrecision; };
  while (is_due(next_end_s())) {
    const std::uint32_t index = ends_.take_first().node;
    std::vector<Job>& jobs = nodes_[index].jobs;
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      if (is_due(job->end_s)) ended.push_back(std::move(job->then));
    }
    std::erase_if(jobs, [&](const Job& job) { return is_due(job.end_s); });
    ++nodes_[index].prediction;
    mark(index);
  }
}

}  // namespace tandem::sim
