// Traces of a profiler as a job that can be replayed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "scenarios/import/traces/recorded_jobs.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Kind = TraceOp::Kind;

bool is_exchange(const TraceOp& op) {
  return op.kind == Kind::collective || op.kind == Kind::send || op.kind == Kind::receive;
}

std::string type_of(const TraceOp& op) {
  if (op.kind == Kind::collective) return std::string(name_of(op.collective));
  if (is_exchange(op)) return "send and receive";
  return op.kind == Kind::memory ? "memory" : "compute";
}

// Ops of this name are alike, the n-th of a step with each other.
std::string name_of_alike(const RankTrace& trace, const TraceOp& op) {
  if (op.kind == Kind::send) return fmt::format("send of {} bytes", op.bytes);
  if (op.kind == Kind::receive) return fmt::format("receive of {} bytes", op.bytes);
  if (op.kind == Kind::collective) return fmt::format("{} of {} bytes", type_of(op), op.bytes);
  return trace.names[static_cast<std::size_t>(op.name)];
}

// Returns how many ops of the trace are one step: those of all, where steps that the profiler marked are not alike.
std::size_t ops_of_step(const RankTrace& trace) {
  const std::size_t all = trace.ops.size();
  const auto steps = static_cast<std::size_t>(std::max(1, trace.steps));
  if (all % steps != 0) return all;
  const std::size_t ops = all / steps;
  for (std::size_t i = ops; i < all; ++i) {
    const TraceOp &one = trace.ops[i - ops], &other = trace.ops[i];
    if (std::tie(one.kind, one.name, one.stream, one.bytes, one.peer) !=
        std::tie(other.kind, other.name, other.stream, other.bytes, other.peer)) {
      return all;
    }
  }
  return ops;
}

class TraceJob {
 public:
  explicit TraceJob(const std::vector<RankTrace>& traces) : traces_(traces) {
    job_.file = traces.front().file;
    for (const RankTrace& trace : traces) index_of_rank_[trace.rank] = static_cast<int>(index_of_rank_.size());
    find_steps();
    find_workers();
  }

  RecordedJob make() {
    find_waits();
    for (std::size_t worker = 0; worker < order_.size(); ++worker) add_ops(static_cast<int>(worker));
    add_collectives();
    add_exchanges();
    add_times();
    const auto ranks = static_cast<std::size_t>(traces_.front().world);
    if (traces_.size() < ranks) {
      job_.notes.push_back(fmt::format("{} of {} ranks of the job were recorded", traces_.size(), ranks));
    }
    for (const RankTrace& trace : traces_) {
      for (const std::string& note : trace.notes) job_.notes.push_back(fmt::format("rank {}: {}", trace.rank, note));
    }
    return std::move(job_);
  }

 private:
  void find_steps() {
    const RankTrace& first = traces_.front();
    const auto marked = static_cast<std::size_t>(std::max(1, first.steps));
    const auto differs = std::ranges::find_if(
        traces_, [&](const RankTrace& trace) { return trace.ops.size() / ops_of_step(trace) != marked; });
    if (differs != traces_.end()) {
      job_.notes.push_back(fmt::format(
          "steps differ in what they do, those of rank {} among others: the whole record is taken as one step",
          differs->rank));
    }
    if (differs != traces_.end() || first.steps == 0) return job_.steps.push_back(0);
    for (int step = 0; step < first.steps; ++step) job_.steps.push_back(first.first_step + step);
  }

  // Ranks that send to each other are a pipeline. Where all pipelines are as long, they are replicas.
  void find_workers() {
    std::vector<int> first(traces_.size());  // of each trace's pipeline
    std::iota(first.begin(), first.end(), 0);
    const auto first_of = [&](int trace) {
      while (first[static_cast<std::size_t>(trace)] != trace) trace = first[static_cast<std::size_t>(trace)];
      return trace;
    };
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      for (const TraceOp& op : traces_[i].ops) {
        if (op.kind != Kind::send && op.kind != Kind::receive) continue;
        const auto peer = index_of_rank_.find(op.peer);
        if (peer == index_of_rank_.end()) continue;
        const int one = first_of(static_cast<int>(i)), other = first_of(peer->second);
        first[static_cast<std::size_t>(std::max(one, other))] = std::min(one, other);
      }
    }
    std::map<int, std::vector<int>> pipelines;
    for (int i = 0; i < static_cast<int>(traces_.size()); ++i) pipelines[first_of(i)].push_back(i);
    const std::size_t stages = pipelines.begin()->second.size();
    const bool are_replicas =
        std::all_of(pipelines.begin(), pipelines.end(), [&](const auto& one) { return one.second.size() == stages; });
    if (!are_replicas) {
      pipelines.clear();
      for (int i = 0; i < static_cast<int>(traces_.size()); ++i) pipelines[i] = {i};
    }
    int replica = 0;
    for (const auto& [begin, pipeline] : pipelines) {
      for (std::size_t stage = 0; stage < pipeline.size(); ++stage) {
        const int rank = traces_[static_cast<std::size_t>(pipeline[stage])].rank;
        job_.workers.push_back({.replica = replica, .stage = static_cast<int>(stage), .rank = rank});
        order_.push_back(pipeline[stage]);
      }
      ++replica;
    }
  }

  const RankTrace& trace_of_worker(int worker) const {
    return traces_[static_cast<std::size_t>(order_[static_cast<std::size_t>(worker)])];
  }
  int type_index(const std::string& type) {
    const auto [known, is_new] = types_.try_emplace(type, static_cast<int>(job_.types.size()));
    if (is_new) job_.types.push_back(type);
    return known->second;
  }
  int alike_index(const std::string& name, int count, const TraceOp& op) {
    const auto [known, is_new] = alikes_.try_emplace({name, count}, static_cast<int>(job_.alikes.size()));
    if (is_new) job_.alikes.push_back({.name = name, .by_median = is_exchange(op), .is_send = op.kind == Kind::send});
    return known->second;
  }

  // Ops before each op of a step, by their places in it.
  using Waits = std::vector<std::set<int>>;

  // Adds what ops of a worker waited for in any step. What they waited for in the step before is left out.
  void add_waits(int worker, Waits& waits) const {
    const RankTrace& trace = trace_of_worker(worker);
    const int count = static_cast<int>(count_of(worker));
    waits.resize(static_cast<std::size_t>(count));
    for (int begin = 0; begin < static_cast<int>(trace.ops.size()); begin += count) {
      std::vector<int> last_of(static_cast<std::size_t>(trace.streams), -1), known_wait = last_of;
      int host_wait = -1;
      for (int i = 0; i < count; ++i) {
        const TraceOp& op = trace.ops[static_cast<std::size_t>(begin + i)];
        const auto stream = static_cast<std::size_t>(op.stream);
        std::set<int>& before = waits[static_cast<std::size_t>(i)];
        if (last_of[stream] >= 0) before.insert(last_of[stream]);
        for (const int one : op.after) {
          if (one >= begin) before.insert(one - begin);
        }
        if (op.host_waits_for >= begin) host_wait = op.host_waits_for - begin;
        // What the host issues after it has waited comes after what it waited for.
        if (host_wait != known_wait[stream]) before.insert(host_wait);
        known_wait[stream] = host_wait;
        last_of[stream] = i;
      }
    }
  }

  // What a worker does in a step. A profile shows only those waits that took time, so that workers which do the same
  // learn from each other.
  std::string program_of(int worker) const {
    const RankTrace& trace = trace_of_worker(worker);
    std::string program;
    for (std::size_t i = 0; i < count_of(worker); ++i) {
      const TraceOp& op = trace.ops[i];
      program += fmt::format("{} {} {} {}\n", static_cast<int>(op.kind), op.stream, op.bytes,
                             trace.names[static_cast<std::size_t>(op.name)]);
    }
    return program;
  }

  void find_waits() {
    std::map<std::string, std::size_t> programs;
    for (int worker = 0; worker < static_cast<int>(order_.size()); ++worker) {
      const auto [known, is_new] = programs.try_emplace(program_of(worker), waits_.size());
      if (is_new) waits_.emplace_back();
      add_waits(worker, waits_[known->second]);
      waits_of_.push_back(known->second);
    }
  }

  void add_ops(int worker) {
    const RankTrace& trace = trace_of_worker(worker);
    const int first = static_cast<int>(job_.ops.size());
    first_op_.push_back(first);
    std::map<std::string, int> names;
    for (std::size_t i = 0; i < count_of(worker); ++i) {
      const TraceOp& op = last_record(worker, i);
      const std::string name = name_of_alike(trace, op);
      job_.ops.push_back(
          {.type = type_index(type_of(op)), .alike = alike_index(name, names[name]++, op), .worker = worker});
      job_.after.emplace_back();
      for (const int before : waits_[waits_of_[static_cast<std::size_t>(worker)]][i]) {
        job_.after.back().push_back(first + before);
      }
    }
  }

  const TraceOp& last_record(int worker, std::size_t op) const {
    const RankTrace& trace = trace_of_worker(worker);
    return trace.ops[trace.ops.size() - trace.ops.size() / job_.steps.size() + op];
  }
  std::size_t count_of(int worker) const { return trace_of_worker(worker).ops.size() / job_.steps.size(); }

  // The n-th calls of a group on its ranks are one collective; read_traces() has compared them.
  void add_collectives() {
    std::map<std::pair<std::vector<int>, int>, std::vector<int>> calls;
    for (int worker = 0; worker < static_cast<int>(order_.size()); ++worker) {
      std::map<int, int> counts;  // by group
      for (std::size_t i = 0; i < count_of(worker); ++i) {
        const TraceOp& op = last_record(worker, i);
        if (op.kind != Kind::collective) continue;
        const int group = op.group;
        const std::vector<int> ranks = group < 0 ? std::vector<int>{trace_of_worker(worker).rank}
                                                 : trace_of_worker(worker).groups[static_cast<std::size_t>(group)];
        calls[{ranks, counts[group]++}].push_back(first_op_[static_cast<std::size_t>(worker)] + static_cast<int>(i));
      }
    }
    for (auto& [call, ops] : calls) job_.groups.push_back(std::move(ops));
  }

  // The n-th send from a rank to another and the n-th receive there are a pair.
  void add_exchanges() {
    struct Ends {
      std::vector<int> sends, receives;
    };
    std::map<std::pair<int, int>, Ends> exchanges;  // by both ranks
    for (int worker = 0; worker < static_cast<int>(order_.size()); ++worker) {
      const int rank = trace_of_worker(worker).rank;
      for (std::size_t i = 0; i < count_of(worker); ++i) {
        const TraceOp& op = last_record(worker, i);
        const int index = first_op_[static_cast<std::size_t>(worker)] + static_cast<int>(i);
        if (op.kind == Kind::send) exchanges[{rank, op.peer}].sends.push_back(index);
        if (op.kind == Kind::receive) exchanges[{op.peer, rank}].receives.push_back(index);
      }
    }
    for (const auto& [ranks, ends] : exchanges) {
      const std::size_t pairs = std::min(ends.sends.size(), ends.receives.size());
      for (std::size_t i = 0; i < pairs; ++i) job_.groups.push_back({ends.sends[i], ends.receives[i]});
      for (std::size_t i = pairs; i < ends.sends.size(); ++i) add_alone(ends.sends[i], ranks.second);
      for (std::size_t i = pairs; i < ends.receives.size(); ++i) add_alone(ends.receives[i], ranks.first);
    }
  }

  // An exchange with a rank that was not recorded takes the time that it took. The other end of one with a recorded
  // rank must be there.
  void add_alone(int op, int peer) {
    const RecordedOp& recorded = job_.ops[static_cast<std::size_t>(op)];
    if (index_of_rank_.contains(peer)) {
      const TraceOp& one = last_record(
          recorded.worker, static_cast<std::size_t>(op - first_op_[static_cast<std::size_t>(recorded.worker)]));
      throw InputError({problem_at(trace_of_worker(recorded.worker).file, one.place,
                                   fmt::format("{} rank {} has no peer in the trace of that rank",
                                               one.kind == Kind::send ? "a send to" : "a receive from", peer))});
    }
    job_.groups.push_back({op});
  }

  void add_times() {
    constexpr double kSecond_ns = 1e9;
    for (int worker = 0; worker < static_cast<int>(order_.size()); ++worker) {
      const RankTrace& trace = trace_of_worker(worker);
      for (std::size_t i = 0; i < count_of(worker); ++i) {
        for (std::size_t step = 0; step < job_.steps.size(); ++step) {
          const TraceOp& op = trace.ops[step * count_of(worker) + i];
          job_.start_s.push_back(static_cast<double>(op.start_ns) / kSecond_ns);
          job_.duration_s.push_back(static_cast<double>(op.duration_ns) / kSecond_ns);
        }
      }
    }
  }

  const std::vector<RankTrace>& traces_;
  std::map<int, int> index_of_rank_;
  std::vector<int> order_;             // for each worker its trace
  std::vector<int> first_op_;          // of each worker
  std::vector<Waits> waits_;           // of each program
  std::vector<std::size_t> waits_of_;  // for each worker those of its program
  std::map<std::string, int> types_;
  std::map<std::pair<std::string, int>, int> alikes_;  // by name and number
  RecordedJob job_;
};

}  // namespace

RecordedJob job_of_traces(const std::vector<RankTrace>& traces) {
  return TraceJob(traces).make();
}

}  // namespace tandem
