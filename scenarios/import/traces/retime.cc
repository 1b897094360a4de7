#include "scenarios/import/traces/retime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "scenarios/import/traces/trace_ranks.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kMostReplicas = 1 << 20;

[[noreturn]] void refuse_retiming(const RankTrace& trace, const FilePlace& place, const std::string& message) {
  throw InputError({problem_at(trace.file, place, message)});
}

[[noreturn]] void refuse_retiming(const RankTrace& trace, const std::string& message) {
  refuse_retiming(trace, beginning_of(trace.file), message);
}

// Returns the distance between neighbouring ranks of a group that spans the whole job at equal distances; 0 for other
// groups.
int stride_of(const std::vector<int>& ranks, int world) {
  if (ranks.size() < 2) return 0;
  const int stride = ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return 0;
  }
  return stride * static_cast<int>(ranks.size()) == world && ranks[0] < stride ? stride : 0;
}

// The group with the most bytes of all-reduces among those that span the job; -1: none.
int gradient_group(const RankTrace& trace) {
  std::map<int, std::int64_t> bytes;
  for (const TraceOp& op : trace.ops) {
    const bool is_reduction = op.kind == TraceOp::Kind::collective && op.collective == CollectiveKind::all_reduce;
    if (is_reduction && op.group >= 0) bytes[op.group] += op.bytes;
  }
  int best = -1;
  for (const auto& [group, sum] : bytes) {
    if (stride_of(trace.groups[static_cast<std::size_t>(group)], trace.world) == 0) continue;
    if (best < 0 || sum > bytes[best]) best = group;
  }
  return best;
}

void check_exchanges(const RankTrace& trace, int stride) {
  for (const TraceOp& op : trace.ops) {
    if (op.kind != TraceOp::Kind::send && op.kind != TraceOp::Kind::receive) continue;
    if (op.peer / stride == trace.rank / stride) continue;
    refuse_retiming(trace, op.place,
                    fmt::format("rank {} exchanges with rank {}, which is in another replica of {} ranks: no other "
                                "number of replicas can be run",
                                trace.rank, op.peer, stride));
  }
}

RankTrace with_world(RankTrace trace, int stride, int world) {
  check_exchanges(trace, stride);
  for (std::vector<int>& ranks : trace.groups) {
    const int own = stride_of(ranks, trace.world);
    const bool is_inside =
        std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank / stride == ranks.front() / stride; });
    if (own == 0 && !is_inside) {
      refuse_retiming(trace,
                      fmt::format("the group [{}] is neither within a replica of {} ranks nor across all of them: no "
                                  "other number of replicas can be run",
                                  fmt::join(ranks, ", "), stride));
    }
    if (own == 0 || (is_inside && ranks.size() == 1)) continue;
    const int first = ranks.front();
    ranks.clear();
    for (int rank = first; rank < world; rank += own) ranks.push_back(rank);
  }
  trace.world = world;
  return trace;
}

std::vector<RankTrace> with_replicas(const std::vector<RankTrace>& traces, int replicas) {
  const int stride = replica_size(traces.front());
  const std::int64_t world = std::int64_t{stride} * replicas;
  if (replicas < 2 || world > kMostReplicas) {
    refuse_retiming(traces.front(),
                    fmt::format("expected 2 to {} replicas, found {}", kMostReplicas / stride, replicas));
  }
  std::vector<RankTrace> result;
  for (const RankTrace& trace : traces) {
    if (trace.rank < world) result.push_back(with_world(trace, stride, static_cast<int>(world)));
  }
  return result;
}

}  // namespace

int replica_size(const RankTrace& trace) {
  const int group = gradient_group(trace);
  if (group >= 0) return stride_of(trace.groups[static_cast<std::size_t>(group)], trace.world);
  // The job already divides its gradients.
  for (const std::vector<int>& ranks : trace.groups) {
    if (const int stride = stride_of(ranks, trace.world); stride > 0) return stride;
  }
  return 0;
}

std::vector<RankTrace> retimed(const std::vector<RankTrace>& traces, int replicas) {
  if (replica_size(traces.front()) == 0) {
    refuse_retiming(traces.front(),
                    "has no collective of a group that spans the job: what another number of replicas would "
                    "do is not known");
  }
  std::vector<RankTrace> result = with_replicas(traces, replicas);
  check_groups(result, replica_size(traces.front()));
  return result;
}

}  // namespace tandem
