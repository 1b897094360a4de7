// Finds the workers of a job that do the same on machines built alike, and which workers of each such class run.
//
// Workers start in one class if the program declares them alike (EngineOptions::alike), their specs are equal, and
// their machines have the same nodes, device models and links at the same places. A class is split when a run shows
// that its members differ. Members are numbered in the order of their indices; members with the same number in classes
// of equal size belong together, as the stages of one pipeline do.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace tandem::sim::symmetry {

class WorkerClasses {
 public:
  explicit WorkerClasses(const EngineOptions& options);

  std::span<const std::vector<int>> classes() const { return members_; }
  const std::vector<int>& members(int index) const { return members_[static_cast<std::size_t>(index)]; }
  int size(int index) const { return static_cast<int>(members(index).size()); }
  int class_of(int worker) const { return class_of_[static_cast<std::size_t>(worker)]; }
  int number_of(int worker) const { return number_of_[static_cast<std::size_t>(worker)]; }

  // Whether the worker runs: the first member of a class runs for all, and further ones as witnesses, whose work must
  // be the same.
  bool runs(int worker) const;
  // Returns the numbers of the members that run: the first and the last one and, in very large classes and in those
  // that were split because members differed, the one in the middle.
  std::vector<int> running_members(int index) const;
  // Whether a class is large enough for this to pay off: has more members than few_alike().
  bool saves_work() const;
  std::size_t few_alike() const { return options_.few_alike; }

  // Makes each worker a class of its own.
  void separate();
  // Divides a class by the parts of its members. The first member's part keeps the index. `members_differ`: because
  // members did not do the same, so that more of them run from now on.
  void split(int index, std::span<const std::uint32_t> part_of_member, bool members_differ);

  // Returns the node that corresponds to `node` on the machine of member `number` of the same class.
  NodeIndex twin(NodeIndex node, int number) const;
  // Returns the number of the member on whose machine a node is.
  int member_at(NodeIndex node) const;
  // The place of a node in its machine.
  std::uint32_t place_of(NodeIndex node) const {
    const Topology& topology = *options_.topology;
    const NodeIndex machines = topology.machine_nodes();
    return node < machines ? node % topology.nodes_of_machine() : places_[node - machines];
  }

 private:
  int worker_at(NodeIndex node) const { return worker_on_[static_cast<std::size_t>(options_.topology->worker(node))]; }
  bool find_machines();
  std::vector<std::u32string> describe_machines();
  NodeIndex node_at(int machine, std::uint32_t place) const;
  void number_members();
  bool has_middle_witness(int index) const;

  const EngineOptions& options_;
  std::vector<std::vector<NodeIndex>> nodes_of_;  // by machine, where nodes were added one by one, not as one of many
  std::vector<std::uint32_t> places_;             // by node, in its machine
  std::vector<int> worker_on_;                    // by machine; -1: none
  std::vector<std::vector<int>> members_;
  std::set<int> distrusted_;               // classes whose members differed when they were one class
  std::vector<int> class_of_, number_of_;  // by worker
};

}  // namespace tandem::sim::symmetry
