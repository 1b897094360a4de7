#include "reports/blame/pipeline_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace tandem {
namespace {

using Kind = PipelineOpKind;

// How much later a receive may seem to start than the last computation that waits for it, and a send to end before
// the first computation whose result it sends: neither waits for the host in the same way.
constexpr double kSlack_s = 5e-5;

struct Direction {
  Kind compute, send, receive;
  int to;  // the next stage, counted from this one
};
constexpr std::array kDirections = {Direction{Kind::forward_compute, Kind::forward_send, Kind::forward_recv, 1},
                                    Direction{Kind::backward_compute, Kind::backward_send, Kind::backward_recv, -1}};

class GraphMaker {
 public:
  GraphMaker(std::vector<PipelineOp> ops, int stages, const std::string& file) : file_(file), stages_(stages) {
    std::sort(ops.begin(), ops.end(), [](const PipelineOp& a, const PipelineOp& b) {
      return std::tie(a.stage, a.start_s, a.order, a.kind) < std::tie(b.stage, b.start_s, b.order, b.kind);
    });
    graph_.ops = std::move(ops);
    graph_.after.resize(graph_.ops.size());
    by_stage_.resize(static_cast<std::size_t>(stages));
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const PipelineOp& op = graph_.ops[i];
      by_stage_[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)].push_back(static_cast<int>(i));
      parts_ = std::max(parts_, op.part + 1);
      if (op.kind == Kind::separate_grads_all_reduce) is_overlapped_ = true;
    }
  }

  PipelineGraph make() {
    for (int stage = 0; stage < stages_; ++stage) {
      add_computations(stage);
      for (const Direction& direction : kDirections) {
        add_exchanges(stage, direction, true);
        add_exchanges(stage, direction, false);
      }
      add_first_backward(stage);
      add_collectives(stage);
      add_end(stage);
    }
    for (const Direction& direction : kDirections) {
      for (int stage = 0; stage < stages_; ++stage) pair_up(stage, direction);
    }
    return std::move(graph_);
  }

 private:
  using OfKind = std::array<std::vector<int>, kPipelineOpKinds>;

  const PipelineOp& op(int index) const { return graph_.ops[static_cast<std::size_t>(index)]; }
  const std::vector<int>& of(int stage, Kind kind) const {
    return by_stage_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)];
  }
  void wait(int op, int before) { graph_.after[static_cast<std::size_t>(op)].push_back(before); }
  void chain(const std::vector<int>& ops) {
    for (std::size_t i = 1; i < ops.size(); ++i) wait(ops[i], ops[i - 1]);
  }
  int last_to_end(const std::vector<int>& ops) const {
    return *std::max_element(ops.begin(), ops.end(), [&](int a, int b) { return op(a).end_s() < op(b).end_s(); });
  }
  [[noreturn]] void refuse(int index, const std::string& message) const {
    throw InputError({problem_at(file_, op(index).place, message)});
  }

  std::vector<int> merged(int stage, std::initializer_list<Kind> kinds) const {
    std::vector<int> all;
    for (const Kind kind : kinds) all.insert(all.end(), of(stage, kind).begin(), of(stage, kind).end());
    std::sort(all.begin(), all.end());  // in the order of their starts, as all ops of a stage are
    return all;
  }
  std::vector<int> computations(int stage) const {
    return merged(stage, {Kind::forward_compute, Kind::backward_compute});
  }
  std::vector<int> in_order(std::vector<int> ops) const {
    std::sort(ops.begin(), ops.end(), [&](int a, int b) { return op(a).order < op(b).order; });
    return ops;
  }

  void add_computations(int stage) {
    chain(computations(stage));
    for (const Direction& direction : kDirections) {
      chain(of(stage, direction.send));
      chain(of(stage, direction.receive));
    }
  }

  // Returns the exchanges that belong to a computation. Profilers record some that were not launched: receives after
  // the last computation began, and sends before the first one ended.
  std::vector<int> launched(int stage, const Direction& direction, bool is_send, const std::vector<int>& passes) const {
    double first_end = op(passes.front()).end_s(), last_start = op(passes.front()).start_s;
    for (const int pass : passes) {
      first_end = std::min(first_end, op(pass).end_s());
      last_start = std::max(last_start, op(pass).start_s);
    }
    std::vector<int> found;
    for (const int one : of(stage, is_send ? direction.send : direction.receive)) {
      const bool is_launched =
          is_send ? op(one).end_s() >= first_end - kSlack_s : op(one).start_s <= last_start + kSlack_s;
      if (is_launched) found.push_back(one);
    }
    return found;
  }

  std::int64_t part_of_job(const PipelineOp& pass) const {
    return pass.part_of_job >= 0 ? pass.part_of_job : std::int64_t{pass.part} * stages_ + pass.stage;
  }

  // Whether an exchange of this pass has another end: not before the first part of the model nor after the last one.
  bool has_peer(const PipelineOp& pass, const Direction& direction, bool is_send) const {
    const std::int64_t peer = part_of_job(pass) + (is_send ? direction.to : -direction.to);
    return peer >= 0 && peer < std::int64_t{parts_} * stages_;
  }

  void add_exchanges(int stage, const Direction& direction, bool is_send) {
    const Kind kind = is_send ? direction.send : direction.receive;
    const std::vector<int>& all = of(stage, kind);
    if (all.empty()) return;
    const std::vector<int> passes = in_order(of(stage, direction.compute));
    if (passes.empty()) {
      refuse(all.front(), fmt::format("stage {} has {} and no {}", stage, name_of(kind), name_of(direction.compute)));
    }
    const std::vector<int> found = launched(stage, direction, is_send, passes);
    // The first part of the model may receive nothing at first, which then is not recorded.
    const std::size_t first = !is_send && found.size() + 1 == passes.size() ? 1 : 0;
    if (!found.empty() && found.size() != passes.size() && found.size() + 1 != passes.size()) {
      refuse(found.front(), fmt::format("stage {} has {} {} for {} {}: expected one for each", stage, found.size(),
                                        name_of(kind), passes.size(), name_of(direction.compute)));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      add_exchange(found[i], passes, i + first, is_send);
      if (has_peer(op(passes[i + first]), direction, is_send)) with_peer_[{stage, kind}].push_back(found[i]);
    }
    const std::vector<int>& peers = with_peer_[{stage, kind}];
    const std::set<int> have_peers(peers.begin(), peers.end());
    for (const int one : all) {
      if (!have_peers.contains(one)) graph_.pairs.push_back({one});
    }
  }

  void add_exchange(int exchange, const std::vector<int>& passes, std::size_t index, bool is_send) {
    if (is_send) return wait(exchange, passes[index]);
    wait(passes[index], exchange);
    if (index > 0) wait(exchange, passes[index - 1]);
  }

  // The first exchanges of gradients are launched together with what the forward pass before them sends or receives,
  // after the second last computation before the first backward pass.
  void add_first_backward(int stage) {
    const std::vector<int> passes = computations(stage);
    const auto first =
        std::find_if(passes.begin(), passes.end(), [&](int pass) { return op(pass).kind == Kind::backward_compute; });
    if (first == passes.end() || first - passes.begin() < 2) return;
    for (const Kind kind : {Kind::backward_recv, Kind::backward_send}) {
      for (const int one : of(stage, kind)) {
        if (op(one).order == 0) wait(one, *(first - 2));
      }
    }
  }

  std::map<int, std::vector<int>> by_part(const std::vector<int>& passes) const {
    std::map<int, std::vector<int>> parts;
    for (const int pass : passes) parts[op(pass).part].push_back(pass);
    return parts;
  }

  void add_collectives(int stage) {
    chain(merged(stage, {Kind::params_all_gather, Kind::grads_reduce_scatter}));
    std::set<int> done;
    const std::vector<int> gathers = in_order(of(stage, Kind::params_all_gather));
    const std::map<int, std::vector<int>> forward = by_part(of(stage, Kind::forward_compute));
    for (auto gather = gathers.rbegin(); gather != gathers.rend(); ++gather) {
      if (!done.insert(op(*gather).part).second) continue;
      if (const auto passes = forward.find(op(*gather).part); passes != forward.end()) {
        wait(passes->second.front(), *gather);
      }
    }
    if (!is_overlapped_) return;
    done.clear();
    const std::map<int, std::vector<int>> backward = by_part(of(stage, Kind::backward_compute));
    for (const int scatter : in_order(of(stage, Kind::grads_reduce_scatter))) {
      if (!done.insert(op(scatter).part).second) continue;
      if (const auto passes = backward.find(op(scatter).part); passes != backward.end()) {
        wait(scatter, last_to_end(passes->second));
      }
    }
  }

  // What follows the last computation, one after the other.
  void add_end(int stage) {
    std::vector<int> last;
    const std::vector<int> passes = computations(stage);
    if (!passes.empty()) last.push_back(last_to_end(passes));
    const auto then = [&](Kind kind) {
      for (const int one : in_order(of(stage, kind))) {
        for (const int before : last) wait(one, before);
        last = {one};
      }
    };
    then(Kind::gc);
    const std::vector<int> scatters = in_order(of(stage, Kind::grads_reduce_scatter));
    if (is_overlapped_ && !scatters.empty()) last.push_back(scatters.back());
    then(Kind::layernorm_grads_all_reduce);
    then(Kind::embedding_grads_all_reduce);
    then(is_overlapped_ ? Kind::separate_grads_all_reduce : Kind::grads_reduce_scatter);
    then(Kind::optimizer_clip_main_grad);
    then(Kind::optimizer);
  }

  void pair_up(int stage, const Direction& direction) {
    const int to = (stage + direction.to + stages_) % stages_;
    const std::vector<int>& sends = with_peer_[{stage, direction.send}];
    const std::vector<int>& receives = with_peer_[{to, direction.receive}];
    const std::size_t pairs = std::min(sends.size(), receives.size());
    for (std::size_t i = 0; i < pairs; ++i) graph_.pairs.push_back({sends[i], receives[i]});
    if (sends.size() == receives.size()) return;
    const bool lacks_send = sends.size() < receives.size();
    const int alone = lacks_send ? receives[pairs] : sends[pairs];
    refuse(alone,
           fmt::format("{} {} of stage {} has no {} on stage {}, which has {}", name_of(op(alone).kind),
                       op(alone).order, op(alone).stage, name_of(lacks_send ? direction.send : direction.receive),
                       lacks_send ? stage : to, pairs));
  }

  const std::string& file_;
  const int stages_;
  int parts_ = 1;               // in a stage
  bool is_overlapped_ = false;  // gradients are scattered during backward passes
  PipelineGraph graph_;
  std::vector<OfKind> by_stage_;
  std::map<std::pair<int, Kind>, std::vector<int>> with_peer_;  // by stage
};

}  // namespace

PipelineGraph pipeline_graph(std::vector<PipelineOp> ops, int stages, const std::string& file) {
  return GraphMaker(std::move(ops), stages, file).make();
}

}  // namespace tandem
