#include "scenarios/import/traces/trace_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topologies/base/error.h"

namespace tandem {
namespace {

struct GroupCall {
  CollectiveKind kind;
  std::int64_t bytes;
  FilePlace place;
  bool operator==(const GroupCall& other) const { return kind == other.kind && bytes == other.bytes; }
};

std::map<std::vector<int>, std::vector<GroupCall>> calls_of(const RankTrace& trace) {
  std::map<std::vector<int>, std::vector<GroupCall>> calls;
  for (const TraceOp& op : trace.ops) {
    if (op.kind != TraceOp::Kind::collective || op.group < 0) continue;
    calls[trace.groups[static_cast<std::size_t>(op.group)]].push_back({op.collective, op.bytes, op.place});
  }
  return calls;
}

[[noreturn]] void refuse_traces(const RankTrace& trace, const FilePlace& place, const std::string& message) {
  throw InputError({problem_at(trace.file, place, message)});
}

void check_pair(const RankTrace& first, const std::vector<GroupCall>& expected, const RankTrace& trace,
                const std::vector<GroupCall>& found, const std::vector<int>& ranks) {
  const std::size_t common = std::min(expected.size(), found.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (expected[i] == found[i]) continue;
    refuse_traces(trace, found[i].place,
                  fmt::format("collective {} of the group [{}] is {} of {} bytes, but {} of {} bytes in {}", i + 1,
                              fmt::join(ranks, ", "), name_of(found[i].kind), found[i].bytes, name_of(expected[i].kind),
                              expected[i].bytes, first.file));
  }
  if (expected.size() == found.size()) return;
  refuse_traces(trace, found.empty() ? beginning_of(trace.file) : found.back().place,
                fmt::format("has {} collectives of the group [{}], and {} has {}: traces of the same steps are needed",
                            found.size(), fmt::join(ranks, ", "), first.file, expected.size()));
}

}  // namespace

const RankTrace& trace_of(const std::vector<RankTrace>& traces, int rank, int period) {
  const RankTrace* found = &traces.front();
  const RankTrace* alike = nullptr;
  for (const RankTrace& trace : traces) {
    if (trace.rank > rank) break;
    found = &trace;
    if ((rank - trace.rank) % period == 0) alike = &trace;
  }
  return alike != nullptr ? *alike : *found;
}

std::vector<int> group_for(const std::vector<int>& ranks, int recorded, int rank, int world) {
  if (rank == recorded || std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return ranks;
  const int size = static_cast<int>(ranks.size());
  if (size < 2) return {rank};
  const int stride = ranks[1] - ranks[0];
  if (stride < 1) return {};
  for (int i = 1; i < size; ++i) {
    if (ranks[static_cast<std::size_t>(i)] - ranks[static_cast<std::size_t>(i - 1)] != stride) return {};
  }
  const int begin = rank / (stride * size) * (stride * size) + rank % stride;
  std::vector<int> group;
  for (int i = 0; i < size; ++i) group.push_back(begin + i * stride);
  return group.back() < world ? group : std::vector<int>{};
}

void check_groups(const std::vector<RankTrace>& traces, int period) {
  std::map<std::vector<int>, std::pair<const RankTrace*, std::vector<GroupCall>>> known;
  for (const RankTrace& trace : traces) {
    for (const auto& [ranks, calls] : calls_of(trace)) {
      const auto [entry, is_new] = known.try_emplace(ranks, &trace, calls);
      if (!is_new) check_pair(*entry->second.first, entry->second.second, trace, calls, ranks);
    }
  }
  for (const RankTrace& trace : traces) {
    const auto own = calls_of(trace);
    for (const auto& [ranks, first] : known) {
      const bool is_member = std::find(ranks.begin(), ranks.end(), trace.rank) != ranks.end();
      if (is_member && !own.contains(ranks)) check_pair(*first.first, first.second, trace, {}, ranks);
    }
  }
  for (int rank = 0; rank < traces.front().world; ++rank) {
    const RankTrace& trace = trace_of(traces, rank, std::max(1, period));
    for (const std::vector<int>& ranks : trace.groups) {
      if (static_cast<int>(ranks.size()) == trace.world) continue;
      if (!group_for(ranks, trace.rank, rank, trace.world).empty()) continue;
      refuse_traces(trace, beginning_of(trace.file),
                    fmt::format("rank {} has no trace, and no group like [{}] of rank {}: give its trace, too", rank,
                                fmt::join(ranks, ", "), trace.rank));
    }
  }
}

}  // namespace tandem
