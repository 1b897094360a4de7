#include "scenarios/plan/trace_bound.h"

#include <algorithm>
#include <cstdint>

namespace tandem {
namespace {

// The host issues ops in order, waits for some, and each op begins after those of its stream and those that it waits
// for (TraceReplay).
std::int64_t least_ns(const RankTrace& trace) {
  std::vector<std::int64_t> ends(trace.ops.size()), streams(static_cast<std::size_t>(std::max(1, trace.streams)));
  std::int64_t host = 0, last = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const TraceOp& op = trace.ops[i];
    if (op.host_waits_for >= 0) host = std::max(host, ends[static_cast<std::size_t>(op.host_waits_for)]);
    const auto stream = static_cast<std::size_t>(op.stream);
    if (stream >= streams.size()) streams.resize(stream + 1);
    std::int64_t begin = streams[stream];
    for (const int other : op.after) begin = std::max(begin, ends[static_cast<std::size_t>(other)]);
    if (op.kind != TraceOp::Kind::join) {
      host += op.issue_ns;
      begin = std::max(begin, host) + op.lag_ns;
    }
    const bool has_own_time = op.kind == TraceOp::Kind::kernel || op.kind == TraceOp::Kind::memory;
    ends[i] = streams[stream] = begin + (has_own_time ? op.duration_ns : 0);
    last = std::max({last, ends[i], host});
  }
  return last;
}

}  // namespace

double least_trace_step_s(const std::vector<RankTrace>& ranks) {
  std::int64_t most = 0;
  for (const RankTrace& trace : ranks) most = std::max(most, least_ns(trace));
  return static_cast<double>(most) * 1e-9;
}

}  // namespace tandem
