#include "engine/sim/collectives/steps/step_graph.h"

namespace tandem::sim::steps {
namespace {

std::size_t place(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

int StepGraph::add_edge(const Edge& edge) {
  edges_.push_back(edge);
  return static_cast<int>(edges_.size()) - 1;
}

int StepGraph::add(const Transfer& transfer) {
  transfers_.push_back(transfer);
  return static_cast<int>(transfers_.size()) - 1;
}

double StepGraph::latency_s(int transfer) const {
  const int edge = transfers_[place(transfer)].edge;
  if (edge == kNoEdge) return 0;
  return edges_[place(edge)].crosses_network ? network_s : inside_s;
}

// Sorts by the earlier one, by counting.
void StepGraph::Successors::fill(std::vector<std::pair<int, int>>& pairs, std::size_t earlier) {
  first.assign(earlier + 1, 0);
  for (const auto& pair : pairs) ++first[place(pair.first) + 1];
  for (std::size_t i = 0; i < earlier; ++i) first[i + 1] += first[i];
  std::vector<std::size_t> at(first.begin(), first.end() - 1);
  all.resize(pairs.size());
  for (const auto& pair : pairs) all[at[place(pair.first)]++] = pair.second;
  pairs = {};
}

void StepGraph::finish() {
  conditions_.assign(transfers_.size(), 0);
  for (const auto& pair : after_sent_) ++conditions_[place(pair.second)];
  for (const auto& pair : after_arrived_) ++conditions_[place(pair.second)];
  sent_.fill(after_sent_, transfers_.size());
  arrived_.fill(after_arrived_, transfers_.size());
  std::vector<std::pair<int, int>> of_gpus;
  for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
    const Edge& one = edges_[edge];
    of_gpus.emplace_back(one.sender >= 0 ? one.sender : one.from, static_cast<int>(edge));
  }
  edges_of_.fill(of_gpus, place(gpus));
}

StepProgress::StepProgress(const StepGraph& graph)
    : graph_(graph),
      conditions_(graph.conditions()),
      queues_(graph.edges().size()),
      next_(graph.transfers().size(), -1),
      left_(graph.transfers().size() + place(graph.gpus)) {
  std::vector<int> none;
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    if (graph.conditions()[i] == 0) release(static_cast<int>(i), none);
  }
}

void StepProgress::come(int gpu, std::vector<int>& starting) {
  --left_;
  for (const int edge : graph_.edges_of(gpu)) send_next(queues_[place(edge)], starting);
}

void StepProgress::send_next(Queue& queue, std::vector<int>& starting) {
  queue.is_busy = queue.first >= 0;
  if (!queue.is_busy) return;
  starting.push_back(queue.first);
  queue.first = next_[place(queue.first)];
}

// Lets a transfer begin, as soon as its edge is free.
void StepProgress::release(int transfer, std::vector<int>& starting) {
  const int edge = graph_.transfer(transfer).edge;
  if (edge == kNoEdge) {
    met_.push_back(transfer);
    if (met_.size() > 1) return;  // the loop below is under way
    for (std::size_t i = 0; i < met_.size(); ++i) arrived(met_[i], starting);
    met_.clear();
    return;
  }
  Queue& queue = queues_[place(edge)];
  if (!queue.is_busy) {
    queue.is_busy = true;
    starting.push_back(transfer);
    return;
  }
  (queue.first < 0 ? queue.first : next_[place(queue.last)]) = transfer;
  queue.last = transfer;
}

void StepProgress::fulfil(int transfer, std::vector<int>& starting) {
  if (--conditions_[place(transfer)] == 0) release(transfer, starting);
}

void StepProgress::sent(int transfer, std::vector<int>& starting) {
  send_next(queues_[place(graph_.transfer(transfer).edge)], starting);
  for (const int later : graph_.waiting_for_sent(transfer)) fulfil(later, starting);
}

void StepProgress::arrived(int transfer, std::vector<int>& starting) {
  --left_;
  for (const int later : graph_.waiting_for_arrived(transfer)) fulfil(later, starting);
}

}  // namespace tandem::sim::steps
