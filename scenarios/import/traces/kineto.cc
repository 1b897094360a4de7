#include "scenarios/import/traces/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/traces/kineto_collectives.h"
#include "scenarios/import/traces/kineto_events.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Kind = TraceOp::Kind;
using Call = KinetoEvents::Call;

// If a kernel starts later than this after everything it waited for, the lag is counted as time of the host.
constexpr std::int64_t kLongestLag_ns = 1'000'000;

class KinetoTrace {
 public:
  KinetoTrace(KinetoEvents events, std::string file) : events_(std::move(events)) {
    trace_.file = std::move(file);
    trace_.rank = events_.rank;
    trace_.says_rank = events_.has_rank;
    trace_.stated_world = events_.world;
    trace_.world = std::max({1, events_.world, events_.rank + 1});
    trace_.device = events_.device;
    trace_.steps = events_.steps;
    trace_.first_step = events_.first_step;
    trace_.names = events_.names;
  }

  RankTrace make() {
    if (events_.works.empty()) {
      throw InputError({problem_at(trace_.file, kBeginning,
                                   "has no kernels: record it with ProfilerActivity.CUDA among the activities")});
    }
    check_ids();
    make_ops();
    add_collectives();
    note_unknown_ranks();
    set_issues();
    order();
    find_waits();
    set_host();
    return std::move(trace_);
  }

 private:
  // One call of the host launches one kernel, but a graph's launches many.
  void check_ids() {
    for (const Call& call : events_.calls) {
      if (call.correlation >= 0) calls_.emplace(call.correlation, &call);
    }
  }

  void make_ops() {
    std::map<std::pair<std::int64_t, std::int64_t>, int> streams;
    std::sort(events_.works.begin(), events_.works.end(),
              [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    begin_ns_ = events_.works.front().start_ns;
    for (const Call& call : events_.calls) {
      if (call.kind != Call::Kind::synchronize && is_of_work(call)) begin_ns_ = std::min(begin_ns_, call.start_ns);
    }
    for (const KinetoEvents::Work& work : events_.works) {
      const auto [stream, is_new] = streams.try_emplace({work.device, work.stream}, trace_.streams);
      if (is_new) ++trace_.streams;
      trace_.ops.push_back({.kind = work.is_memory ? Kind::memory : Kind::kernel,
                            .name = work.name,
                            .stream = stream->second,
                            .start_ns = work.start_ns - begin_ns_,
                            .duration_ns = work.duration_ns,
                            .place = work.place});
    }
  }

  bool is_of_work(const Call& call) {
    if (correlations_.empty()) {
      for (const KinetoEvents::Work& work : events_.works) correlations_.insert({work.correlation, true});
    }
    return correlations_.contains(call.correlation);
  }

  void add_collectives() {
    KinetoCollectives collectives(events_, trace_);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) collectives.complete(events_.works[i], trace_.ops[i]);
    collectives.finish();
  }

  void note_unknown_ranks() {
    if (events_.has_rank) return;
    const bool says_world = events_.world > 0 || trace_.world > 1;
    trace_.notes.push_back(fmt::format("the file does not say its rank{} (distributedInfo): taken as rank {} of {}",
                                       says_world ? "" : " or how many ranks there are", trace_.rank, trace_.world));
  }

  // Finds when the host had issued each op: at the end of its call, or when the op started if that was earlier. An op
  // without a call counts as issued when it started.
  void set_issues() {
    std::int64_t missing = 0;
    issued_.resize(trace_.ops.size());
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      const auto call = calls_.find(events_.works[i].correlation);
      const bool is_known = call != calls_.end() && events_.works[i].correlation >= 0;
      missing += is_known ? 0 : 1;
      issued_[i] = trace_.ops[i].start_ns;
      if (is_known) {
        const std::int64_t end = call->second->start_ns + call->second->duration_ns - begin_ns_;
        issued_[i] = std::max<std::int64_t>(0, std::min(issued_[i], end));
      }
    }
    if (missing == 0) return;
    trace_.notes.push_back(fmt::format("{} of {} kernels have no call of the host: taken as issued when they started",
                                       missing, trace_.ops.size()));
  }

  // Sorts ops by their issue; ops of one stream stay in the order in which they started.
  void order() {
    std::vector<std::int64_t> latest(static_cast<std::size_t>(trace_.streams), 0);
    for (std::size_t i = 0; i < issued_.size(); ++i) {
      auto& last = latest[static_cast<std::size_t>(trace_.ops[i].stream)];
      last = issued_[i] = std::max(last, issued_[i]);
    }
    std::vector<std::size_t> by_issue(issued_.size());
    for (std::size_t i = 0; i < by_issue.size(); ++i) by_issue[i] = i;
    std::stable_sort(by_issue.begin(), by_issue.end(),
                     [&](std::size_t a, std::size_t b) { return issued_[a] < issued_[b]; });
    std::vector<TraceOp> ops;
    std::vector<std::int64_t> issued;
    std::vector<KinetoEvents::Work> works;
    for (const std::size_t i : by_issue) {
      ops.push_back(std::move(trace_.ops[i]));
      issued.push_back(issued_[i]);
      works.push_back(events_.works[i]);
    }
    trace_.ops = std::move(ops);
    issued_ = std::move(issued);
    events_.works = std::move(works);
  }

  // Finds what an op waited for besides its stream and the host: the work of another stream that ended last before the
  // op started, if it ended after both. A collective always waits for the work that was issued before it.
  void find_waits() {
    struct Stream {
      int last = -1;                // of the ops issued so far
      std::vector<int> finished{};  // in the order of issue, and so of their ends
    };
    std::vector<Stream> streams(static_cast<std::size_t>(trace_.streams));
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      TraceOp& op = trace_.ops[i];
      Stream& own = streams[static_cast<std::size_t>(op.stream)];
      const std::int64_t previous = own.last < 0 ? 0 : trace_.ops[static_cast<std::size_t>(own.last)].end_ns();
      std::int64_t free_ns = std::max(previous, issued_[i]);
      const bool is_collective = op.kind == Kind::collective || op.kind == Kind::send || op.kind == Kind::receive;
      int waited_for = -1;
      for (const Stream& other : streams) {
        if (&other == &own || other.finished.empty()) continue;
        const int found = last_before(other.finished, op.start_ns);
        if (found < 0) continue;
        const std::int64_t end = trace_.ops[static_cast<std::size_t>(found)].end_ns();
        if (is_collective && end <= op.start_ns) op.after.push_back(found);
        if (end <= free_ns) continue;
        free_ns = end;
        waited_for = found;
      }
      if (waited_for >= 0 && (op.after.empty() || op.after.back() != waited_for)) op.after.push_back(waited_for);
      op.lag_ns = std::max<std::int64_t>(0, op.start_ns - free_ns);
      const bool is_late = waited_for < 0 && issued_[i] >= previous;
      if (is_late || op.lag_ns > kLongestLag_ns) {  // because of the host, or of something that is not recorded
        issued_[i] += op.lag_ns;
        op.lag_ns = 0;
      }
      own.last = static_cast<int>(i);
      own.finished.push_back(static_cast<int>(i));
    }
  }

  int last_before(const std::vector<int>& finished, std::int64_t time_ns) const {
    const auto after = std::upper_bound(finished.begin(), finished.end(), time_ns, [&](std::int64_t time, int op) {
      return time < trace_.ops[static_cast<std::size_t>(op)].end_ns();
    });
    return after == finished.begin() ? -1 : *std::prev(after);
  }

  // Finds the host's time between the ops it issues, and the points where it waits for the device: calls that
  // synchronize, and copies that ended before their calls did.
  void set_host() {
    std::vector<std::pair<std::int64_t, std::int64_t>> waits;  // begin, end
    for (const Call& call : events_.calls) {
      const std::int64_t begin = call.start_ns - begin_ns_, end = begin + call.duration_ns;
      if (call.kind == Call::Kind::synchronize && end > 0) waits.emplace_back(begin, end);
      if (call.kind == Call::Kind::copy && is_of_work(call)) waits.emplace_back(begin, end);
    }
    std::sort(waits.begin(), waits.end());
    std::vector<int> by_end(trace_.ops.size());
    for (std::size_t i = 0; i < by_end.size(); ++i) by_end[i] = static_cast<int>(i);
    std::sort(by_end.begin(), by_end.end(), [&](int a, int b) {
      return trace_.ops[static_cast<std::size_t>(a)].end_ns() < trace_.ops[static_cast<std::size_t>(b)].end_ns();
    });
    apply_waits(waits, by_end);
    std::int64_t last = 0;
    for (const TraceOp& op : trace_.ops) last = std::max(last, op.end_ns());
    trace_.recorded_ns = last;
  }

  void apply_waits(const std::vector<std::pair<std::int64_t, std::int64_t>>& waits, const std::vector<int>& by_end) {
    std::size_t wait = 0;
    std::int64_t clock = 0;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      TraceOp& op = trace_.ops[i];
      std::int64_t reached = clock;
      for (; wait < waits.size() && waits[wait].second <= issued_[i]; ++wait) {
        const int found = last_before(by_end, waits[wait].second);
        if (found < 0 || found >= static_cast<int>(i)) continue;
        const std::int64_t end = trace_.ops[static_cast<std::size_t>(found)].end_ns();
        if (end <= std::max(waits[wait].first, reached)) continue;  // it was done before
        op.host_waits_for = found;
        reached = end;
      }
      const std::int64_t issued = std::max(issued_[i], reached);
      op.issue_ns = issued - reached;
      clock = issued;
    }
  }

  KinetoEvents events_;
  RankTrace trace_;
  std::unordered_map<std::int64_t, const Call*> calls_;
  std::unordered_map<std::int64_t, bool> correlations_;
  std::int64_t begin_ns_ = 0;
  std::vector<std::int64_t> issued_;  // since the trace began, an op each
};

}  // namespace

RankTrace read_kineto(const InputFile& file) {
  ByteSource source(file);
  JsonStream json(source);
  return KinetoTrace(read_kineto_events(json), file.name()).make();
}

}  // namespace tandem
