// Trees, and NVLS with trees between the domains.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/sim/collectives/steps/planned_call.h"

namespace tandem::sim::steps {
namespace {

constexpr int kNoDomain = -1;
constexpr int kTrees = 2;  // half of the channels each, so that every domain passes on what it receives only once

std::size_t index_of(int number) {
  return static_cast<std::size_t>(number);
}

// The parent of a domain in a binary tree whose leaves are the odd ones: ncclGetBtree, src/graph/trees.cc.
int parent_in_first(int domain, int domains) {
  if (domain == 0) return kNoDomain;
  const int bit = domain & -domain;
  const int parent = (domain ^ bit) | (bit << 1);
  return parent < domains ? parent : domain ^ bit;
}

// In the second tree the leaves of the first one pass on: it is mirrored, or turned by one (ncclGetDtree).
int parent_of(int tree, int domain, int domains) {
  if (tree == 0) return parent_in_first(domain, domains);
  const bool is_mirrored = domains % 2 == 0;
  const int place = is_mirrored ? domains - 1 - domain : (domain + domains - 1) % domains;
  const int parent = parent_in_first(place, domains);
  if (parent == kNoDomain) return kNoDomain;
  return is_mirrored ? domains - 1 - parent : (parent + 1) % domains;
}

int depth_of(int domains) {
  int deepest = 0;
  for (int domain = 0; domain < domains; ++domain) {
    int depth = 0;
    for (int at = domain; at != kNoDomain; at = parent_in_first(at, domains)) ++depth;
    deepest = std::max(deepest, depth - 1);
  }
  return deepest;
}

// A tree whose nodes are added one by one: a chunk is added up on its way to the root, and its sum comes down again.
class Tree {
 public:
  Tree(StepGraph& graph, Transfer chunk) : graph_(graph), chunk_(chunk) {}

  // Adds a node and its edges to a parent, which was added before; -1: none.
  int add_node(int parent, const Edge& up, const Edge& down) {
    const int added = static_cast<int>(nodes_.size());
    nodes_.push_back({.parent = parent});
    if (parent >= 0) {
      nodes_.back().up_edge = graph_.add_edge(up);
      nodes_.back().down_edge = graph_.add_edge(down);
      nodes_[index_of(parent)].children.push_back(added);
    }
    return added;
  }

  // Adds the transfers of the next chunk. What a node adds to it exists from `before` on, by node; empty: always.
  void add_chunk(const std::vector<int>& before = {}) {
    for (int node = static_cast<int>(nodes_.size()) - 1; node >= 0; --node) add_up(node, before);
    for (std::size_t node = 0; node < nodes_.size(); ++node) add_down(static_cast<int>(node));
    if (chunk_number_ >= kSlots) await_slots(past_[index_of(chunk_number_ % kSlots)]);
    past_.resize(kSlots);
    std::vector<Passed>& passed = past_[index_of(chunk_number_++ % kSlots)];
    passed.clear();
    for (const Node& node : nodes_) passed.push_back(node.passed);
  }

  // What must have arrived until the node has the last chunk's result.
  std::vector<int> results(int node) const {
    const Node& own = nodes_[index_of(node)];
    return own.parent >= 0 ? std::vector<int>{own.passed.down} : arrivals(node);
  }

 private:
  struct Passed {  // the transfers of one chunk to a node's parent, and from it
    int up = -1;
    int down = -1;
  };
  struct Node {
    int parent = -1;
    int up_edge = kNoEdge;
    int down_edge = kNoEdge;
    int start = -1;
    Passed passed{};  // of the last chunk
    std::vector<int> children{};
  };

  std::vector<int> arrivals(int node) const {
    const Node& own = nodes_[index_of(node)];
    std::vector<int> found;
    for (const int child : own.children) found.push_back(nodes_[index_of(child)].passed.up);
    if (own.start >= 0) found.push_back(own.start);
    return found;
  }

  void add_up(int node, const std::vector<int>& before) {
    Node& own = nodes_[index_of(node)];
    own.start = before.empty() ? -1 : before[index_of(node)];
    if (own.parent < 0) return;
    Transfer transfer = chunk_;
    transfer.edge = own.up_edge;
    own.passed.up = graph_.add(transfer);
    for (const int needed : arrivals(node)) graph_.after_arrived(own.passed.up, needed);
  }

  void add_down(int node) {
    Node& own = nodes_[index_of(node)];
    if (own.parent < 0) return;
    Transfer transfer = chunk_;
    transfer.edge = own.down_edge;
    own.passed.down = graph_.add(transfer);
    for (const int needed : results(own.parent)) graph_.after_arrived(own.passed.down, needed);
  }

  // A buffer is free again when the node has passed on the chunk that was there.
  void await_slots(const std::vector<Passed>& earlier) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const int parent = nodes_[node].parent;
      if (parent < 0 || nodes_[index_of(parent)].parent < 0) continue;
      graph_.after_sent(nodes_[node].passed.up, earlier[index_of(parent)].up);
      graph_.after_sent(nodes_[index_of(parent)].passed.down, earlier[node].down);
    }
  }

  StepGraph& graph_;
  Transfer chunk_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Passed>> past_;  // of the last kSlots chunks, by node
  int chunk_number_ = 0;
};

// The domains in an order in which parents come first.
std::vector<int> parents_first(int tree, int domains) {
  std::vector<std::pair<int, int>> by_depth;
  for (int domain = 0; domain < domains; ++domain) {
    int depth = 0;
    for (int at = domain; at != kNoDomain; at = parent_of(tree, at, domains)) ++depth;
    by_depth.emplace_back(depth, domain);
  }
  std::sort(by_depth.begin(), by_depth.end());
  std::vector<int> order;
  for (const auto& found : by_depth) order.push_back(found.second);
  return order;
}

// The way from a domain's head, the first GPU of a lane, to that of another one.
Edge between_heads(int lane, int from, int to, const Lanes& lanes) {
  Edge edge = lanes.between(lane, from, to);
  edge.sender = lanes.chain(lane, from).front();
  return edge;
}

// Adds a tree of the heads of all domains. Returns the nodes of the heads, by domain.
std::vector<int> add_heads(int lane, int tree, const Lanes& lanes, Tree& into) {
  std::vector<int> nodes(index_of(lanes.domains()), -1);
  for (const int domain : parents_first(tree, lanes.domains())) {
    const int parent = parent_of(tree, domain, lanes.domains());
    nodes[index_of(domain)] = parent == kNoDomain
                                  ? into.add_node(-1, {}, {})
                                  : into.add_node(nodes[index_of(parent)], between_heads(lane, domain, parent, lanes),
                                                  between_heads(lane, parent, domain, lanes));
  }
  return nodes;
}

// In every round all GPUs send their data to the switch, which adds it for the heads, and these send the sums to all of
// them, while the next round is read: thread blocks of their own do each. `reduced` and `results`: by domain, the
// points at which a round has been added up, and has its results.
class NvlsRounds {
 public:
  NvlsRounds(const PlannedCall& call, const Lanes& lanes, StepGraph& graph, int rounds)
      : lanes_(lanes),
        graph_(graph),
        reading_(index_of(lanes.domains())),
        writing_(reading_),
        writes_(index_of(lanes.domains())) {
    const double bytes = call.call.bytes / rounds, copy_s = call.plan.transfer_s / rounds;
    read_ = {.bytes = bytes, .copy_s = copy_s};
    write_ = {.bytes = bytes / call.facts().machine.gpus, .copy_s = copy_s};
    for (int domain = 0; domain < lanes.domains(); ++domain) {
      const std::vector<int>& gpus_of = call.facts().domains[index_of(domain)];
      if (gpus_of.size() == 1) continue;  // its data is its sum
      for (std::size_t i = 0; i < gpus_of.size(); ++i) {
        const Edge edge{.from = gpus_of[i], .to = gpus_of[(i + 1) % gpus_of.size()]};
        reading_[index_of(domain)].push_back(graph.add_edge(edge));
        writing_[index_of(domain)].push_back(graph.add_edge(edge));
      }
    }
  }

  std::vector<int> add_reads() {
    std::vector<int> reduced;
    for (int domain = 0; domain < lanes_.domains(); ++domain) {
      const int point = graph_.add({});
      const std::vector<std::vector<int>>& writes = writes_[index_of(domain)];
      const std::vector<int>& edges = reading_[index_of(domain)];
      for (std::size_t i = 0; i < edges.size(); ++i) {
        read_.edge = edges[i];
        const int read = graph_.add(read_);
        graph_.after_arrived(point, read);
        if (writes.size() >= kSlots) graph_.after_arrived(read, writes[writes.size() - kSlots][i]);
      }
      reduced.push_back(point);
    }
    return reduced;
  }

  void add_writes(const std::vector<int>& results) {
    for (int domain = 0; domain < lanes_.domains(); ++domain) {
      std::vector<int>& writes = writes_[index_of(domain)].emplace_back();
      for (const int edge : writing_[index_of(domain)]) {
        write_.edge = edge;
        writes.push_back(graph_.add(write_));
        graph_.after_arrived(writes.back(), results[index_of(domain)]);
      }
    }
  }

 private:
  const Lanes& lanes_;
  StepGraph& graph_;
  Transfer read_{}, write_{};
  std::vector<std::vector<int>> reading_, writing_;    // edges, by domain and GPU
  std::vector<std::vector<std::vector<int>>> writes_;  // by domain, round and GPU
};

// The trees of NVLS between domains: two for each lane.
class TreesBetween {
 public:
  TreesBetween(const PlannedCall& call, const Lanes& lanes, StepGraph& graph, int rounds)
      : lanes_(lanes), graph_(graph) {
    if (lanes.domains() == 1) return;
    const double trees = double{1} * kTrees * lanes.count() * rounds;
    for (int lane = 0; lane < lanes.count(); ++lane) {
      for (int tree = 0; tree < kTrees; ++tree) {
        trees_.emplace_back(graph, Transfer{.bytes = call.call.bytes / trees, .copy_s = call.plan.transfer_s / rounds});
        nodes_.push_back(add_heads(lane, tree, lanes, trees_.back()));
      }
    }
  }

  // Passes a round's sums through the trees. Returns by domain the points at which it has the results.
  std::vector<int> add_round(const std::vector<int>& reduced) {
    if (trees_.empty()) return reduced;
    std::vector<int> results;
    for (int domain = 0; domain < lanes_.domains(); ++domain) results.push_back(graph_.add({}));
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      std::vector<int> before(nodes_[i].size());
      for (std::size_t domain = 0; domain < reduced.size(); ++domain) {
        before[index_of(nodes_[i][domain])] = reduced[domain];
      }
      trees_[i].add_chunk(before);
      for (std::size_t domain = 0; domain < reduced.size(); ++domain) {
        for (const int needed : trees_[i].results(nodes_[i][domain])) graph_.after_arrived(results[domain], needed);
      }
    }
    return results;
  }

 private:
  const Lanes& lanes_;
  StepGraph& graph_;
  std::vector<Tree> trees_;
  std::vector<std::vector<int>> nodes_;  // by tree and domain
};

}  // namespace

// In a domain a tree is a chain that begins at the GPU at which a lane enters.
bool add_trees(const PlannedCall& call, const Lanes& lanes, StepGraph& graph) {
  const nccl::Machine& machine = call.facts().machine;
  const int network_hops = 2 * depth_of(machine.domains), hops = 2 * (machine.gpus - 1) + network_hops;
  const double each = double{2} * kTrees * lanes.count() * (machine.total_gpus - 1);
  if (each > kMostTransfers) return false;
  const int chunks = call.chunks(graph, hops, network_hops, each);
  const Transfer chunk{.bytes = call.call.bytes / (kTrees * lanes.count()) / chunks,
                       .copy_s = call.plan.transfer_s / chunks};
  for (int lane = 0; lane < lanes.count(); ++lane) {
    for (int number = 0; number < kTrees; ++number) {
      Tree tree(graph, chunk);
      const std::vector<int> heads = add_heads(lane, number, lanes, tree);
      for (int domain = 0; domain < lanes.domains(); ++domain) {
        const std::vector<int>& gpus = lanes.chain(lane, domain);
        int parent = heads[index_of(domain)];
        for (std::size_t i = 1; i < gpus.size(); ++i) {
          const Edge up{.from = gpus[i], .to = gpus[i - 1]}, down{.from = gpus[i - 1], .to = gpus[i]};
          parent = tree.add_node(parent, up, down);
        }
      }
      for (int i = 0; i < chunks; ++i) tree.add_chunk();
    }
  }
  return true;
}

bool add_nvls(const PlannedCall& call, const Lanes& lanes, StepGraph& graph) {
  const nccl::Machine& machine = call.facts().machine;
  const double each = double{2} * machine.total_gpus + double{2} * kTrees * lanes.count() * (machine.domains - 1);
  if (each > kMostTransfers) return false;
  const int network_hops = 2 * depth_of(machine.domains);
  const int rounds = call.chunks(graph, 2 + network_hops, network_hops, each);
  NvlsRounds inside(call, lanes, graph, rounds);
  TreesBetween between(call, lanes, graph, rounds);
  for (int i = 0; i < rounds; ++i) inside.add_writes(between.add_round(inside.add_reads()));
  return true;
}

}  // namespace tandem::sim::steps
