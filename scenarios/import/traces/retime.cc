#include "scenarios/import/traces/retime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "scenarios/import/traces/trace_edit.h"
#include "scenarios/import/traces/trace_ranks.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kSmallShare =
    1000;  // all-reduces below this part of the largest are not gradients but losses or norms
constexpr double kForwardShare =
    1.0 / 3;  // of the kernels before the last gradient, because a backward pass takes twice as long
constexpr int kMostReplicas = 1 << 20;
constexpr std::int64_t kMostBuckets = 2'000;  // in a trace

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

// --- Replicas ---

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

// --- Gradients ---

// Returns the all-reduces of gradients in runs: all that a step reduces before it uses any result.
std::vector<std::vector<int>> gradient_runs(const RankTrace& trace, int group) {
  std::vector<int> all;
  std::int64_t largest = 0;
  const auto is_gradient = [&](const TraceOp& op) {
    return op.kind == TraceOp::Kind::collective && op.collective == CollectiveKind::all_reduce && op.group == group;
  };
  for (const TraceOp& op : trace.ops) largest = std::max(largest, is_gradient(op) ? op.bytes : 0);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (is_gradient(trace.ops[i]) && trace.ops[i].bytes > largest / kSmallShare) all.push_back(static_cast<int>(i));
  }
  // Steps that reduce the same, by the profiler's count of them.
  const auto steps = static_cast<std::size_t>(std::max(1, trace.steps));
  const std::size_t each = all.size() / steps;
  bool repeats = steps > 1 && each > 0 && all.size() % steps == 0;
  const auto bytes_of = [&](std::size_t i) { return trace.ops[static_cast<std::size_t>(all[i])].bytes; };
  for (std::size_t i = each; repeats && i < all.size(); ++i) repeats = bytes_of(i) == bytes_of(i - each);
  std::vector<std::vector<int>> runs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool begins = runs.empty() || (repeats && i % each == 0);
    for (int op = runs.empty() ? all[i] : runs.back().front(); !repeats && !begins && op < all[i]; ++op) {
      const TraceOp& user = trace.ops[static_cast<std::size_t>(op)];
      const auto is_of_run = [&](int other) {
        return std::find(runs.back().begin(), runs.back().end(), other) != runs.back().end();
      };
      begins = is_of_run(user.host_waits_for) ||
               (user.kind != TraceOp::Kind::collective && std::any_of(user.after.begin(), user.after.end(), is_of_run));
    }
    if (begins) runs.emplace_back();
    runs.back().push_back(all[i]);
  }
  return runs;
}

// The kernels of the busiest stream between two ops, and the total kernel time at the end of each.
class KernelClock {
 public:
  KernelClock(const RankTrace& trace, int stream, int begin, int end) {
    for (int op = begin; op < end; ++op) {
      const TraceOp& kernel = trace.ops[static_cast<std::size_t>(op)];
      if (kernel.stream != stream || kernel.kind != TraceOp::Kind::kernel) continue;
      kernels_.push_back(op);
      total_ns_ += kernel.duration_ns;
      ends_.push_back(total_ns_);
    }
  }
  std::int64_t total_ns() const { return total_ns_; }
  // Returns the kernel during which the clock reaches this time; -1 if there are no kernels.
  int at(double time_ns) const {
    if (kernels_.empty()) return -1;
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), static_cast<std::int64_t>(time_ns));
    const auto place = std::min(static_cast<std::size_t>(found - ends_.begin()), kernels_.size() - 1);
    return kernels_[place];
  }
  // Returns the last kernel before an op, or -1.
  int previous(int op) const {
    const auto found = std::lower_bound(kernels_.begin(), kernels_.end(), op);
    return found == kernels_.begin() ? -1 : *std::prev(found);
  }
  // The time at which all kernels before an op have ended.
  std::int64_t before(int op) const {
    const auto found = std::lower_bound(kernels_.begin(), kernels_.end(), op);
    return found == kernels_.begin() ? 0 : ends_[static_cast<std::size_t>(found - kernels_.begin()) - 1];
  }

 private:
  std::vector<int> kernels_{};
  std::vector<std::int64_t> ends_{};
  std::int64_t total_ns_ = 0;
};

int busiest_stream(const RankTrace& trace) {
  std::map<int, std::int64_t> times;
  for (const TraceOp& op : trace.ops) {
    if (op.kind == TraceOp::Kind::kernel) times[op.stream] += op.duration_ns;
  }
  const auto busiest =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return busiest == times.end() ? 0 : busiest->first;
}

// Divides the gradients of a run into buckets of `bucket_bytes`, in order. A bucket is reduced when its last gradient
// is complete: at the op that reduced it or, if it ends within such an op, after the corresponding part of the kernels
// since the previous op.
void rebucket(const RankTrace& trace, const std::vector<int>& run, std::int64_t bucket_bytes, int stream,
              TraceEdit& edit) {
  std::int64_t all = 0, done = 0;
  for (const int op : run) all += trace.ops[static_cast<std::size_t>(op)].bytes;
  std::vector<int> pending;  // ops whose last bytes are in the bucket that comes next
  for (std::size_t i = 0; i < run.size(); ++i) {
    const TraceOp& old = trace.ops[static_cast<std::size_t>(run[i])];
    const std::int64_t begin = done;
    done += old.bytes;
    const KernelClock kernels(trace, stream, i == 0 ? run[i] : run[i - 1], run[i]);
    const auto add = [&](std::int64_t bytes, int position, TraceOp bucket) {
      bucket.bytes = bytes;
      bucket.duration_ns = 0;
      const int number = edit.insert(position, std::move(bucket));
      for (const int op : pending) edit.replace(op, number);
      pending.clear();
    };
    for (std::int64_t end = (begin / bucket_bytes + 1) * bucket_bytes; end < done; end += bucket_bytes) {
      const double share = static_cast<double>(end - begin) / static_cast<double>(old.bytes);
      const int kernel = kernels.at(share * static_cast<double>(kernels.total_ns()));
      TraceOp early = old;
      early.issue_ns = 0;
      early.host_waits_for = -1;
      if (kernel >= 0) early.after = {kernel};
      add(bucket_bytes, kernel >= 0 ? kernel : run[i] - 1, std::move(early));
    }
    pending.push_back(run[i]);
    const std::int64_t rest = done % bucket_bytes;
    TraceOp last = old;
    last.issue_ns = 0;  // the replaced op passes its own issue time to the next one
    if (rest == 0 || done == all) add(rest == 0 ? bucket_bytes : rest, run[i], std::move(last));
  }
}

// Reduces gradients to their owners. The parameters of a bucket are gathered before the kernels of the forward and the
// backward pass that use them, while the kernels of the previous bucket run.
void shard(RankTrace& trace, const std::vector<int>& run, int begin, int stream, int gather_stream, TraceEdit& edit) {
  const auto op_at = [&](int op) -> TraceOp& { return trace.ops[static_cast<std::size_t>(op)]; };
  const KernelClock kernels(trace, stream, begin, run.back());
  double all = 0;
  for (const int op : run) all += static_cast<double>(op_at(op).bytes);
  const double first = static_cast<double>(kernels.before(run.front()));
  const double forward_ns = std::min(kForwardShare * static_cast<double>(kernels.total_ns()), first);
  // Regions of kernels in their order: the forward pass of the last bucket first, then the backward pass.
  std::vector<std::pair<int, double>> regions;  // the op with the bucket's size, and when its kernels begin
  double share = 0;
  for (auto op = run.rbegin(); op != run.rend(); ++op) {
    regions.emplace_back(*op, forward_ns * share / all);
    share += static_cast<double>(op_at(*op).bytes);
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    regions.emplace_back(run[i], i == 0 ? forward_ns : static_cast<double>(kernels.before(run[i - 1])));
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const int user = kernels.at(regions[i].second);
    const int before = i == 0 ? begin : kernels.at(regions[i - 1].second);
    TraceOp gather{.kind = TraceOp::Kind::collective,
                   .name = op_at(regions[i].first).name,
                   .stream = gather_stream,
                   .start_ns = op_at(std::max(0, before - 1)).start_ns,
                   .collective = CollectiveKind::all_gather,
                   .bytes = op_at(regions[i].first).bytes,
                   .group = op_at(regions[i].first).group};
    // The order is the same on all ranks: each gather comes before the gradients of the previous bucket.
    const std::size_t reduced = i <= run.size() ? 0 : i - run.size() - 1;
    const int position = std::min((user < 0 ? begin : before), run[reduced]) - 1;
    const int busy = i == 0 ? begin - 1 : kernels.previous(position + 1);
    if (busy >= 0) gather.after = {busy};
    const int number = edit.insert(position, std::move(gather));
    if (user >= 0) edit.wait(user, number);
  }
  for (const int op : run) op_at(op).collective = CollectiveKind::reduce_scatter;
}

void check_buckets(const RankTrace& trace, const std::vector<std::vector<int>>& runs, std::int64_t bucket_bytes) {
  std::int64_t bytes = 0;
  for (const std::vector<int>& run : runs) {
    for (const int op : run) bytes += trace.ops[static_cast<std::size_t>(op)].bytes;
  }
  if (bytes / bucket_bytes < kMostBuckets) return;
  refuse_retiming(trace, fmt::format("has {} bytes of gradients, which would be {} buckets of {} bytes, and {} are "
                                     "the most: give larger buckets",
                                     bytes, bytes / bucket_bytes, bucket_bytes, kMostBuckets));
}

void change_gradients(RankTrace& trace, const Retiming& wanted) {
  const int group = gradient_group(trace);
  if (group < 0) {
    refuse_retiming(trace,
                    "has no all-reduce of a group that spans the job, which would tell its gradients: its buckets "
                    "and the division of its parameters stay as recorded");
  }
  const int stream = busiest_stream(trace);
  if (wanted.bucket_bytes > 0) {
    const std::vector<std::vector<int>> runs = gradient_runs(trace, group);
    check_buckets(trace, runs, wanted.bucket_bytes);
    TraceEdit edit(trace);
    for (const std::vector<int>& run : runs) rebucket(trace, run, wanted.bucket_bytes, stream, edit);
    edit.apply();
  }
  if (!wanted.is_divided) return;
  TraceEdit edit(trace);
  const int gather_stream = trace.streams++;
  int begin = 0;
  for (const std::vector<int>& run : gradient_runs(trace, group)) {
    shard(trace, run, begin, stream, gather_stream, edit);
    begin = run.back() + 1;
  }
  edit.apply();
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

std::vector<RankTrace> retimed(const std::vector<RankTrace>& traces, const Retiming& wanted) {
  if (wanted.replicas > 0 && replica_size(traces.front()) == 0) {
    refuse_retiming(traces.front(),
                    "has no collective of a group that spans the job: what another number of replicas would "
                    "do is not known");
  }
  std::vector<RankTrace> result = wanted.replicas > 0 ? with_replicas(traces, wanted.replicas) : traces;
  for (RankTrace& trace : result) {
    if (wanted.bucket_bytes > 0 || wanted.is_divided) change_gradients(trace, wanted);
  }
  check_groups(result, replica_size(traces.front()));
  return result;
}

}  // namespace tandem
