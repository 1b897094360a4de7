// Pipelines that are executed here, op by op, for tests of what is concluded from their records.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/blame/pipeline_job.h"

namespace tandem {

// A pass of a part of the model over a micro-batch.
struct MadePass {
  bool is_forward = true;
  int replica = 0, stage = 0, part = 0, micro_batch = 0;
};

struct MadePipeline {
  int replicas = 1, stages = 1, parts = 1, micro_batches = 4;
  bool is_overlapped = false;  // gradients are scattered during backward passes
  int step = 0;
  double exchange_s = 0.25, collective_s = 0.5, optimizer_s = 0.75;
  std::function<double(const MadePass&)> pass_s = [](const MadePass& pass) { return pass.is_forward ? 1.0 : 2.0; };
  std::function<double(const MadePass&)> delay_s = [](const MadePass&) { return 0.0; };  // before it starts
};

// Executes one step, as Megatron-LM schedules it: one forward, one backward, with several parts interleaved.
class MadeStep {
 public:
  explicit MadeStep(const MadePipeline& made) : made_(made) {
    for (int replica = 0; replica < made.replicas; ++replica) {
      for (int stage = 0; stage < made.stages; ++stage) workers_.push_back(worker(replica, stage));
    }
    gather();
    while (advance()) {
    }
    finish();
  }

  const std::vector<PipelineOp>& ops() const { return ops_; }
  double time_s() const { return end_s_; }

 private:
  using Kind = PipelineOpKind;
  struct Exchange {
    double start_s = 0, end_s = 0;
  };
  struct Worker {
    int replica = 0, stage = 0;
    std::vector<MadePass> passes{};
    std::vector<double> ends{};                  // of the passes so far
    std::vector<double> gathered{};              // when each part has its parameters
    double dp_stream_s = 0;                      // when collectives among replicas are done
    int sent[2] = {0, 0}, received[2] = {0, 0};  // exchanges so far, backward and forward
    double send_end[2] = {0, 0}, receive_end[2] = {0, 0};
    std::map<int, double> arrived{};  // by pass
    std::map<Kind, int> orders{};
    int scattered = 0;
  };

  Worker& at(int replica, int stage) { return workers_[static_cast<std::size_t>(replica * made_.stages + stage)]; }

  MadePass pass_of(int replica, int stage, bool is_forward, int number) const {
    const int group = made_.stages * made_.parts;
    const int part = number % group / made_.stages;
    return {.is_forward = is_forward,
            .replica = replica,
            .stage = stage,
            .part = is_forward ? part : made_.parts - 1 - part,
            .micro_batch = number / group * made_.stages + number % made_.stages};
  }

  Worker worker(int replica, int stage) const {
    const int total = made_.micro_batches * made_.parts;
    int warm_up = made_.stages - stage - 1;
    if (made_.parts > 1) warm_up = 2 * warm_up + (made_.parts - 1) * made_.stages;
    warm_up = std::min(warm_up, total);
    Worker made{.replica = replica, .stage = stage};
    int forward = 0, backward = 0;
    while (forward < warm_up) made.passes.push_back(pass_of(replica, stage, true, forward++));
    while (backward < total) {
      if (forward < total) made.passes.push_back(pass_of(replica, stage, true, forward++));
      made.passes.push_back(pass_of(replica, stage, false, backward++));
    }
    return made;
  }

  void record(Worker& worker, Kind kind, double start_s, double end_s, int part = 0, int part_of_job = -1) {
    ops_.push_back({.replica = worker.replica,
                    .stage = worker.stage,
                    .rank = worker.replica * made_.stages + worker.stage,
                    .step = made_.step,
                    .kind = kind,
                    .order = worker.orders[kind]++,
                    .part = part,
                    .part_of_job = part_of_job,
                    .start_s = start_s,
                    .duration_s = end_s - start_s,
                    .place = {.line = static_cast<int>(ops_.size()) + 2, .column = 1}});
    end_s_ = std::max(end_s_, end_s);
  }

  // Each replica waits for the others.
  void gather() {
    for (Worker& one : workers_) {
      one.gathered.assign(static_cast<std::size_t>(made_.parts), 0);
      if (made_.replicas == 1) continue;
      for (int part = 0; part < made_.parts; ++part) {
        record(one, Kind::params_all_gather, one.dp_stream_s, one.dp_stream_s + made_.collective_s, part);
        one.dp_stream_s += made_.collective_s;
        one.gathered[static_cast<std::size_t>(part)] = one.dp_stream_s;
      }
    }
  }

  int part_of_job(const MadePass& pass) const { return pass.part * made_.stages + pass.stage; }
  bool has_peer(const MadePass& pass, bool is_send) const {
    const int peer = part_of_job(pass) + (pass.is_forward == is_send ? 1 : -1);
    return peer >= 0 && peer < made_.parts * made_.stages;
  }

  // Returns the n-th pass of a direction, or of those that receive; -1: there is none.
  int nth_pass(const Worker& worker, bool is_forward, int number, bool receives = false) const {
    for (std::size_t i = 0; i < worker.passes.size(); ++i) {
      const MadePass& pass = worker.passes[i];
      if (pass.is_forward != is_forward || (receives && !has_peer(pass, false))) continue;
      if (number-- == 0) return static_cast<int>(i);
    }
    return -1;
  }

  // When the pass of the same direction before this one ended: it is done, or nothing is known.
  std::pair<bool, double> before(const Worker& worker, int pass) const {
    const bool is_forward = worker.passes[static_cast<std::size_t>(pass)].is_forward;
    for (int i = pass - 1; i >= 0; --i) {
      if (worker.passes[static_cast<std::size_t>(i)].is_forward != is_forward) continue;
      const bool is_done = i < static_cast<int>(worker.ends.size());
      return {is_done, is_done ? worker.ends[static_cast<std::size_t>(i)] : 0};
    }
    return {true, 0};
  }

  bool exchange(Worker& sender, bool is_forward) {
    const int direction = is_forward ? 1 : 0;
    const int to = (sender.stage + (is_forward ? 1 : -1) + made_.stages) % made_.stages;
    Worker& receiver = at(sender.replica, to);
    const int send = nth_pass(sender, is_forward, sender.sent[direction]);
    if (send < 0 || send >= static_cast<int>(sender.ends.size())) return false;
    if (!has_peer(sender.passes[static_cast<std::size_t>(send)], true)) {
      if (made_.parts > 1) alone(sender, is_forward, true, sender.ends[static_cast<std::size_t>(send)]);
      ++sender.sent[direction];
      return true;
    }
    const int receive = nth_pass(receiver, is_forward, receiver.received[direction], true);
    const auto [is_ready, ready_s] = before(receiver, receive);
    if (!is_ready) return false;
    const double sent_s = std::max(sender.ends[static_cast<std::size_t>(send)], sender.send_end[direction]);
    const double waits_s = std::max(ready_s, receiver.receive_end[direction]);
    const double end_s = std::max(sent_s, waits_s) + made_.exchange_s;
    record(sender, is_forward ? Kind::forward_send : Kind::backward_send, sent_s, end_s);
    record(receiver, is_forward ? Kind::forward_recv : Kind::backward_recv, waits_s, end_s);
    sender.send_end[direction] = receiver.receive_end[direction] = end_s;
    ++sender.sent[direction];
    ++receiver.received[direction];
    receiver.arrived[receive] = end_s;
    return true;
  }

  // Records an exchange that has no other end, and returns when it is done.
  double alone(Worker& worker, bool is_forward, bool is_send, double ready_s) {
    double& stream_s = (is_send ? worker.send_end : worker.receive_end)[is_forward ? 1 : 0];
    const double start_s = std::max(ready_s, stream_s);
    stream_s = start_s + made_.exchange_s;
    record(worker,
           is_send ? (is_forward ? Kind::forward_send : Kind::backward_send)
                   : (is_forward ? Kind::forward_recv : Kind::backward_recv),
           start_s, stream_s);
    return stream_s;
  }

  bool run_next(Worker& worker) {
    const std::size_t next = worker.ends.size();
    if (next == worker.passes.size()) return false;
    const MadePass& pass = worker.passes[next];
    double start_s = next > 0 ? worker.ends.back() : 0;
    if (pass.is_forward) start_s = std::max(start_s, worker.gathered[static_cast<std::size_t>(pass.part)]);
    if (has_peer(pass, false)) {
      const auto arrived = worker.arrived.find(static_cast<int>(next));
      if (arrived == worker.arrived.end()) return false;
      start_s = std::max(start_s, arrived->second);
    } else if (made_.parts > 1 && next > 0) {
      start_s = std::max(start_s, alone(worker, pass.is_forward, false, before(worker, static_cast<int>(next)).second));
    }
    start_s += made_.delay_s(pass);
    const double end_s = start_s + made_.pass_s(pass);
    record(worker, pass.is_forward ? Kind::forward_compute : Kind::backward_compute, start_s, end_s, pass.part,
           part_of_job(pass));
    worker.ends.push_back(end_s);
    return true;
  }

  bool advance() {
    bool has_moved = false;
    for (Worker& one : workers_) {
      has_moved = run_next(one) || has_moved;
      for (const bool is_forward : {true, false}) has_moved = exchange(one, is_forward) || has_moved;
    }
    return has_moved;
  }

  // Runs a collective among workers, from when each is ready, and returns its end.
  double together(const std::vector<Worker*>& workers, const std::vector<double>& ready, Kind kind, int part = 0) {
    const double end_s = *std::max_element(ready.begin(), ready.end()) + made_.collective_s;
    for (std::size_t i = 0; i < workers.size(); ++i) record(*workers[i], kind, ready[i], end_s, part);
    return end_s;
  }

  // When the last backward pass of a part ended.
  static double last_pass(const Worker& worker, int part) {
    double end_s = 0;
    for (std::size_t i = 0; i < worker.passes.size(); ++i) {
      if (!worker.passes[i].is_forward && worker.passes[i].part == part) end_s = worker.ends[i];
    }
    return end_s;
  }

  void finish() {
    std::vector<Worker*> all;
    std::vector<double> all_ready;
    for (int stage = 0; stage < made_.stages; ++stage) {
      std::vector<Worker*> group;
      for (int replica = 0; replica < made_.replicas; ++replica) group.push_back(&at(replica, stage));
      std::vector<double> ready;
      for (const Worker* one : group) ready.push_back(one->ends.back());
      if (made_.replicas > 1) reduce(group, ready);
      all.insert(all.end(), group.begin(), group.end());
      all_ready.insert(all_ready.end(), ready.begin(), ready.end());
    }
    const double clipped_s = together(all, all_ready, Kind::optimizer_clip_main_grad);
    for (Worker* one : all) record(*one, Kind::optimizer, clipped_s, clipped_s + made_.optimizer_s);
  }

  void reduce(const std::vector<Worker*>& group, std::vector<double>& ready) {
    if (!made_.is_overlapped) {
      for (int part = 0; part < made_.parts; ++part) {
        const double end_s = together(group, ready, Kind::grads_reduce_scatter, part);
        std::fill(ready.begin(), ready.end(), end_s);
      }
      return;
    }
    double stream_s = group.front()->dp_stream_s;
    for (int part = made_.parts - 1; part >= 0; --part) {
      std::vector<double> passed;
      for (const Worker* one : group) passed.push_back(std::max(last_pass(*one, part), stream_s));
      stream_s = together(group, passed, Kind::grads_reduce_scatter, part);
    }
    for (double& one : ready) one = std::max(one, stream_s);
    const double end_s = together(group, ready, Kind::separate_grads_all_reduce);
    std::fill(ready.begin(), ready.end(), end_s);
  }

  const MadePipeline& made_;
  std::vector<Worker> workers_;
  std::vector<PipelineOp> ops_;
  double end_s_ = 0;
};

}  // namespace tandem
