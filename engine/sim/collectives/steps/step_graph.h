// The steps of one collective: transfers of chunks over paths between GPUs, and what each of them waits for. It is what
// `collectives: message` simulates, and is made from the same plan as the flows of `fluid` (step_planner.h).
//
// Times are seconds, rates bytes/s. Transfers and edges are numbered from 0 in the order in which they were added.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/sim/collectives/nccl/plan.h"

namespace tandem::sim::steps {

// The way by which one channel sends from one GPU to another. It carries one transfer at a time, in the order in which
// they may begin; channels have edges of their own, which share links.
struct Edge {
  int from = 0;  // positions in the surveyed list: the ends of its route
  int to = 0;
  int sender = -1;  // the GPU whose kernel sends, where another one's NIC is taken; -1: `from`
  NodeIndex from_nic = nccl::kNoNic;
  NodeIndex to_nic = nccl::kNoNic;
  bool crosses_network = false;
};

inline constexpr int kNoEdge = -1;

struct Transfer {
  int edge = kNoEdge;  // none: a point at which several paths meet
  double bytes = 0;
  double copy_s = 0;  // what they take on free links
};

class StepGraph {
 public:
  int add_edge(const Edge& edge);
  int add(const Transfer& transfer);
  // `later` begins when the bytes of `earlier` have left, or when they have arrived and can be used.
  void after_sent(int later, int earlier) { after_sent_.emplace_back(earlier, later); }
  void after_arrived(int later, int earlier) { after_arrived_.emplace_back(earlier, later); }
  // Needed before what follows.
  void finish();

  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  const Transfer& transfer(int index) const { return transfers_[static_cast<std::size_t>(index)]; }
  std::span<const int> waiting_for_sent(int transfer) const { return sent_.of(transfer); }
  std::span<const int> waiting_for_arrived(int transfer) const { return arrived_.of(transfer); }
  const std::vector<int>& conditions() const { return conditions_; }  // of each transfer, how many
  std::span<const int> edges_of(int sender) const { return edges_of_.of(sender); }
  // Returns what passes between the end of a transfer and its arrival.
  double latency_s(int transfer) const;

  int gpus = 0;
  double lead_s = 0;  // between a GPU's arrival and its first transfer
  // What a step costs beside its copy, inside a domain and between two.
  double inside_s = 0;
  double network_s = 0;

 private:
  struct Successors {
    std::vector<std::size_t> first;
    std::vector<int> all;
    void fill(std::vector<std::pair<int, int>>& pairs, std::size_t earlier);
    std::span<const int> of(int earlier) const {
      const auto at = static_cast<std::size_t>(earlier);
      return std::span(all).subspan(first[at], first[at + 1] - first[at]);
    }
  };

  std::vector<Edge> edges_;
  std::vector<Transfer> transfers_;
  std::vector<std::pair<int, int>> after_sent_, after_arrived_;  // earlier and later; until finish()
  Successors sent_, arrived_, edges_of_;
  std::vector<int> conditions_;
};

// Which transfers have begun. Whoever executes a graph says which GPUs have come and what has ended, and starts what
// then begins. Until a GPU has come it sends nothing; others may send to its buffers.
class StepProgress {
 public:
  // The graph must be finished, and outlive it.
  explicit StepProgress(const StepGraph& graph);

  // Each appends the transfers that begin now, which all have an edge.
  void come(int gpu, std::vector<int>& starting);
  void sent(int transfer, std::vector<int>& starting);
  void arrived(int transfer, std::vector<int>& starting);
  bool is_over() const { return left_ == 0; }

 private:
  struct Queue {  // of an edge: those that may begin, linked by next_
    int first = -1;
    int last = -1;
    bool is_busy = true;  // or its GPU has yet to come
  };
  void send_next(Queue& queue, std::vector<int>& starting);
  void fulfil(int transfer, std::vector<int>& starting);
  void release(int transfer, std::vector<int>& starting);

  const StepGraph& graph_;
  std::vector<int> conditions_;
  std::vector<Queue> queues_;
  std::vector<int> next_;
  std::vector<int> met_;  // points that have been reached, and whose successors have yet to learn it
  std::size_t left_ = 0;
};

}  // namespace tandem::sim::steps
