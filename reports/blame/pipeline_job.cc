#include "reports/blame/pipeline_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "reports/blame/pipeline_graph.h"

namespace tandem {
namespace {

using Kind = PipelineOpKind;

bool is_among_replicas(Kind kind) {
  return kind == Kind::params_all_gather || kind == Kind::grads_reduce_scatter ||
         kind == Kind::separate_grads_all_reduce || kind == Kind::optimizer_clip_main_grad;
}

// A replica in a step.
using Instance = std::pair<int, int>;
// An op in the graph of a replica.
using OpName = std::tuple<int, Kind, int>;  // stage, kind, order
OpName name_of_op(const PipelineOp& op) {
  return {op.stage, op.kind, op.order};
}

class PipelineJob {
 public:
  PipelineJob(const std::vector<PipelineOp>& ops, const std::string& file, const PipelineSizes& sizes)
      : ops_(ops), file_(file), sizes_(sizes) {
    job_.name = sizes.name;
    job_.file = file;
  }

  RecordedJob make() {
    if (ops_.empty()) throw InputError({problem_at(file_, kBeginning, "has no ops")});
    find_workers();
    find_steps();
    check_spans();
    leave_out_broken_steps();
    std::vector<PipelineOp> ops = reference();
    check_unique(ops);
    graph_ = pipeline_graph(std::move(ops), stages_, file_);
    add_ops();
    add_groups();
    add_times();
    return std::move(job_);
  }

 private:
  [[noreturn]] void refuse(const PipelineOp& op, const std::string& message) const {
    throw InputError({problem_at(file_, op.place, message)});
  }

  // Sizes that are stated must be those of the ops.
  void check_size(std::string_view what, std::int64_t stated, int PipelineOp::*index) const {
    if (stated == 0) return;
    const auto most = std::max_element(ops_.begin(), ops_.end(),
                                       [&](const PipelineOp& a, const PipelineOp& b) { return a.*index < b.*index; });
    if ((*most).*index + 1 == stated) return;
    if ((*most).*index < stated) {
      throw InputError({problem_at(file_, kBeginning,
                                   fmt::format("has ops of the {}s 0 to {}, and the job is stated to have {} of them",
                                               what, (*most).*index, stated))});
    }
    refuse(*most, fmt::format("{} {} of a job that is stated to have {}", what, (*most).*index, stated));
  }

  void find_workers() {
    const bool are_divided =
        std::any_of(ops_.begin(), ops_.end(), [&](const PipelineOp& op) { return op.replica >= sizes_.replicas; });
    check_size("DP rank", std::int64_t{sizes_.replicas} * (are_divided ? sizes_.sequences : 1), &PipelineOp::replica);
    check_size("stage", sizes_.stages, &PipelineOp::stage);
    check_size("model chunk", sizes_.parts, &PipelineOp::part);
    std::map<std::pair<int, int>, const PipelineOp*> workers;
    std::map<int, const PipelineOp*> of_rank;
    for (const PipelineOp& op : ops_) {
      if (sizes_.ranks > 0 && op.rank >= sizes_.ranks) {
        refuse(op, fmt::format("rank {} of a job that is stated to have {}", op.rank, sizes_.ranks));
      }
      const auto [known, is_new] = workers.try_emplace({op.replica, op.stage}, &op);
      if (!is_new && known->second->rank != op.rank) {
        refuse(op, fmt::format("rank {} of DP rank {}, stage {}, which was rank {} in line {}", op.rank, op.replica,
                               op.stage, known->second->rank, known->second->place.line));
      }
      const auto [other, is_first] = of_rank.try_emplace(op.rank, &op);
      if (!is_first && std::pair(other->second->replica, other->second->stage) != std::pair(op.replica, op.stage)) {
        refuse(op,
               fmt::format("rank {} is DP rank {}, stage {}, but DP rank {}, stage {} in line {}", op.rank, op.replica,
                           op.stage, other->second->replica, other->second->stage, other->second->place.line));
      }
    }
    for (const auto& [place, op] : workers) stages_ = std::max(stages_, place.second + 1);
    replicas_ = workers.rbegin()->first.first + 1;
    for (int replica = 0; replica < replicas_; ++replica) {
      for (int stage = 0; stage < stages_; ++stage) {
        const auto worker = workers.find({replica, stage});
        if (worker == workers.end()) refuse_missing_worker(replica, stage);
        job_.workers.push_back({.replica = replica, .stage = stage, .rank = worker->second->rank});
      }
    }
  }

  [[noreturn]] void refuse_missing_worker(int replica, int stage) const {
    throw InputError(
        {problem_at(file_, kBeginning,
                    fmt::format("has no op of DP rank {}, stage {}: expected ops of all workers (DP ranks 0 to {}, "
                                "stages 0 to {}), because they wait for each other",
                                replica, stage, replicas_ - 1, stages_ - 1))});
  }

  void find_steps() {
    std::map<int, std::set<std::pair<int, int>>> workers;
    for (const PipelineOp& op : ops_) workers[op.step].insert({op.replica, op.stage});
    int partial = 0;
    for (const auto& [step, present] : workers) {
      if (present.size() < job_.workers.size()) {
        ++partial;
        continue;
      }
      index_of_step_[step] = job_.steps.size();
      job_.steps.push_back(step);
    }
    if (job_.steps.empty()) {
      throw InputError(
          {problem_at(file_, kBeginning, fmt::format("has no step with ops of all {} workers", job_.workers.size()))});
    }
    if (partial > 0)
      job_.notes.push_back(
          fmt::format("left out, because a worker has no op in them: {} of {} steps", partial, workers.size()));
  }

  // No step of a job takes so long: a time is missing, or another clock's.
  void check_spans() const {
    constexpr double kLongestStep_s = 1e6;
    std::map<std::tuple<int, int, int>, const PipelineOp*> first;  // by step and worker, who has one clock
    for (const PipelineOp& op : ops_) {
      const auto [known, is_new] = first.try_emplace({op.step, op.replica, op.stage}, &op);
      if (op.duration_s > kLongestStep_s) refuse(op, fmt::format("takes {:.4g} s: no op does", op.duration_s));
      const double apart_s = std::abs(op.start_s - known->second->start_s);
      if (apart_s <= kLongestStep_s) continue;
      refuse(op, fmt::format("starts {:.4g} s apart from line {}, on the same worker in step {}: is a time missing?",
                             apart_s, known->second->place.line, op.step));
    }
  }

  // Steps of which most was not recorded would have to be filled in.
  void leave_out_broken_steps() {
    std::map<int, std::size_t> counts;
    for (const PipelineOp& op : ops_) {
      if (index_of_step_.contains(op.step)) ++counts[op.step];
    }
    std::size_t most = 0;
    for (const auto& [step, count] : counts) most = std::max(most, count);
    const std::size_t all = job_.steps.size();
    std::erase_if(job_.steps, [&](int step) { return counts[step] * 2 < most; });
    if (job_.steps.size() == all) return;
    index_of_step_.clear();
    for (std::size_t i = 0; i < job_.steps.size(); ++i) index_of_step_[job_.steps[i]] = i;
    job_.notes.push_back(fmt::format("left out, because most of their ops were not recorded: {} of {} steps",
                                     all - job_.steps.size(), all));
  }

  // Returns the ops of the replica and step which has most of them, the first such one: those that others lack were not
  // recorded there.
  std::vector<PipelineOp> reference() const {
    std::map<Instance, int> counts;
    for (const PipelineOp& op : ops_) {
      if (index_of_step_.contains(op.step)) ++counts[{op.step, op.replica}];
    }
    Instance best = counts.begin()->first;
    for (const auto& [instance, count] : counts) {
      if (count > counts[best]) best = instance;
    }
    std::vector<PipelineOp> found;
    for (const PipelineOp& op : ops_) {
      if (Instance(op.step, op.replica) == best) found.push_back(op);
    }
    return found;
  }

  void add_ops() {
    std::array<int, kPipelineOpKinds> types{};
    for (std::size_t kind = 0; kind < types.size(); ++kind) {
      const PipelineOpFacts& facts = facts_of(static_cast<Kind>(kind));
      const std::string type(facts.type);
      const auto known = std::find(job_.types.begin(), job_.types.end(), type);
      types[kind] = static_cast<int>(known - job_.types.begin());
      if (known == job_.types.end()) job_.types.push_back(type);
      job_.alikes.push_back(
          {.name = std::string(facts.name),
           .by_median = facts.by_median,
           .is_send = static_cast<Kind>(kind) == Kind::forward_send || static_cast<Kind>(kind) == Kind::backward_send});
    }
    const int count = static_cast<int>(graph_.ops.size());
    for (int replica = 0; replica < replicas_; ++replica) {
      for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
        const PipelineOp& op = graph_.ops[i];
        const auto kind = static_cast<std::size_t>(op.kind);
        job_.ops.push_back(
            {.type = types[kind], .alike = static_cast<int>(kind), .worker = replica * stages_ + op.stage});
        job_.after.emplace_back();
        for (const int before : graph_.after[i]) job_.after.back().push_back(replica * count + before);
      }
    }
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) index_of_.emplace(name_of_op(graph_.ops[i]), i);
  }

  void check_unique(const std::vector<PipelineOp>& ops) const {
    std::map<OpName, const PipelineOp*> first;
    for (const PipelineOp& op : ops) {
      const auto [known, is_new] = first.try_emplace(name_of_op(op), &op);
      if (!is_new) refuse_twice(*known->second, op);
    }
  }

  [[noreturn]] void refuse_twice(const PipelineOp& one, const PipelineOp& other) const {
    const auto [first, second] = std::minmax(one.place.line, other.place.line);
    refuse(one.place.line == second ? one : other,
           fmt::format("{} {} of DP rank {}, stage {} in step {} occurs twice, first in line {}", name_of(one.kind),
                       one.order, one.replica, one.stage, one.step, first));
  }

  void add_groups() {
    std::vector<std::vector<int>> within = graph_.pairs;  // groups of one replica
    std::map<int, std::vector<int>> embeddings;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const PipelineOp& op = graph_.ops[i];
      if (op.kind == Kind::embedding_grads_all_reduce) embeddings[op.order].push_back(static_cast<int>(i));
    }
    for (const auto& [order, group] : embeddings) within.push_back(group);
    const int count = static_cast<int>(graph_.ops.size());
    for (int replica = 0; replica < replicas_; ++replica) {
      for (const std::vector<int>& group : within) {
        job_.groups.emplace_back();
        for (const int op : group) job_.groups.back().push_back(replica * count + op);
      }
    }
    std::map<std::tuple<int, Kind, int>, std::vector<int>> across;
    for (int replica = 0; replica < replicas_; ++replica) {
      for (int i = 0; i < count; ++i) {
        const PipelineOp& op = graph_.ops[static_cast<std::size_t>(i)];
        if (!is_among_replicas(op.kind)) continue;
        const bool is_of_all = op.kind == Kind::optimizer_clip_main_grad;
        across[{is_of_all ? 0 : op.stage, op.kind, op.order}].push_back(replica * count + i);
      }
    }
    for (auto& [name, group] : across) job_.groups.push_back(std::move(group));
  }

  void add_times() {
    job_.start_s.assign(job_.ops.size() * job_.steps.size(), kNotRecorded);
    job_.duration_s = job_.start_s;
    std::int64_t unknown = 0, recorded = 0;
    for (const PipelineOp& op : ops_) {
      const auto step = index_of_step_.find(op.step);
      if (step == index_of_step_.end()) continue;
      const auto index = index_of_.find(name_of_op(op));
      if (index == index_of_.end()) {
        ++unknown;
        continue;
      }
      const std::size_t at =
          job_.at(static_cast<std::size_t>(op.replica) * graph_.ops.size() + index->second, step->second);
      if (job_.duration_s[at] == job_.duration_s[at]) refuse_repeated(op);
      job_.start_s[at] = op.start_s;
      job_.duration_s[at] = op.duration_s;
      ++recorded;
    }
    const std::int64_t missing = static_cast<std::int64_t>(job_.duration_s.size()) - recorded;
    if (missing > 0) {
      job_.notes.push_back(
          fmt::format("{} of {} ops were not recorded, and are taken to be as long as their kind ideally is", missing,
                      job_.duration_s.size()));
    }
    if (unknown > 0) {
      job_.notes.push_back(
          fmt::format("{} ops are left out, because the step with most ops has none like them", unknown));
    }
  }

  [[noreturn]] void refuse_repeated(const PipelineOp& op) const {
    for (const PipelineOp& other : ops_) {
      if (other.replica == op.replica && other.step == op.step && name_of_op(other) == name_of_op(op)) {
        refuse_twice(other, op);
      }
    }
    TANDEM_UNREACHABLE("an op with a time is among the ops");
  }

  const std::vector<PipelineOp>& ops_;
  const std::string& file_;
  const PipelineSizes& sizes_;
  int replicas_ = 0, stages_ = 0;
  RecordedJob job_;
  std::map<int, std::size_t> index_of_step_;
  PipelineGraph graph_;
  std::map<OpName, std::size_t> index_of_;  // in the graph
};

}  // namespace

RecordedJob pipeline_job(const std::vector<PipelineOp>& ops, const std::string& file, const PipelineSizes& sizes) {
  return PipelineJob(ops, file, sizes).make();
}

}  // namespace tandem
