#include "engine/sim/collectives/nccl/ring_packing.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tandem::sim::nccl {
namespace {

constexpr int kMostSteps = 20000;   // of the search for one speed
constexpr int kMostSearched = 64;   // GPUs, each a bit of a word; more than that use the ring in their own order
constexpr int kMostPerBranch = 24;  // orders that a branch of the search tries

class Packer {
 public:
  Packer(const Mesh& mesh, double speed, int most, bool open)
      : mesh_(mesh), most_(most), open_(open), left_(mesh.gbs.size()) {
    constexpr double kRounding = 1e-9;
    for (std::size_t i = 0; i < left_.size(); ++i) left_[i] = static_cast<int>(mesh.gbs[i] / speed + kRounding);
  }

  Packing pack() {
    most_ = std::min(most_, degree_bound());
    if (open_ && is_even_and_full()) {
      best_ = zigzags();
      return {best_, false};
    }
    if (mesh_.members <= kMostSearched) descend();
    const bool direct = !best_.empty();
    if (!direct) add_relayed();
    return {best_, !direct && !best_.empty()};
  }

 private:
  int& left(int from, int to) { return left_[static_cast<std::size_t>(from * mesh_.size + to)]; }

  bool is_even_and_full() {
    if (mesh_.members < 2 || mesh_.members % 2 != 0) return false;
    for (int from = 0; from < mesh_.members; ++from) {
      for (int to = 0; to < mesh_.members; ++to) {
        if (from != to && (left(from, to) == 0 || left(from, to) != left(0, 1))) return false;
      }
    }
    return true;
  }

  // The chains 0, 1, n - 1, 2, n - 2, ... and its n - 1 rotations pass every link of a full mesh exactly once.
  std::vector<Order> zigzags() {
    const int size = mesh_.members;
    std::vector<Order> chains;
    const int all = std::min(most_, size * left(0, 1));
    for (int chain = 0; chain < all; ++chain) {
      Order& order = chains.emplace_back();
      for (int i = 0; i < size; ++i) {
        const int step = i % 2 == 1 ? (i + 1) / 2 : size - i / 2;
        order.push_back((chain + step) % size);
      }
    }
    return chains;
  }

  // There are no more rings than the GPU with the least capacity can enter and leave. A chain need not close.
  int degree_bound() {
    if (open_) return std::numeric_limits<int>::max();
    int bound = std::numeric_limits<int>::max();
    for (int gpu = 0; gpu < mesh_.members; ++gpu) {
      int out = 0;
      int in = 0;
      for (int other = 0; other < mesh_.members; ++other) {
        out += left(gpu, other);
        in += left(other, gpu);
      }
      bound = std::min({bound, out, in});
    }
    return bound;
  }

  void take(const Order& order, int count) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) left(order[i], order[i + 1]) -= count;
    if (!open_) left(order.back(), order.front()) -= count;
  }

  void descend() {
    if (chosen_.size() > best_.size()) best_ = chosen_;
    if (static_cast<int>(best_.size()) >= most_ || steps_ > kMostSteps) return;
    std::vector<Order> candidates;
    for (int start = 0; start < (open_ ? mesh_.members : 1); ++start) {
      Order order = {start};
      extend(order, std::uint64_t{1} << start, candidates);
    }
    for (const Order& order : candidates) {
      take(order, 1);
      chosen_.push_back(order);
      descend();
      chosen_.pop_back();
      take(order, -1);
      if (static_cast<int>(best_.size()) >= most_ || ++steps_ > kMostSteps) return;
    }
  }

  // Appends the orders that continue `order` over links with capacity left, those over the freest links first.
  void extend(Order& order, std::uint64_t visited, std::vector<Order>& found) {
    if (static_cast<int>(found.size()) >= kMostPerBranch || ++steps_ > kMostSteps) return;
    const int at = order.back();
    if (static_cast<int>(order.size()) == mesh_.members) {
      if (open_ || mesh_.members == 1 || left(at, order.front()) > 0) found.push_back(order);
      return;
    }
    std::vector<int> next;
    for (int gpu = 0; gpu < mesh_.members; ++gpu) {
      if ((visited >> gpu & 1U) == 0 && left(at, gpu) > 0) next.push_back(gpu);
    }
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) { return left(at, a) > left(at, b); });
    for (const int gpu : next) {
      order.push_back(gpu);
      extend(order, visited | std::uint64_t{1} << gpu, found);
      order.pop_back();
    }
  }

  // If no ring follows links alone, adds rings in the members' own order, which pass a third GPU where a link is
  // missing.
  void add_relayed() {
    std::vector<Order> orders(1);
    for (int gpu = 0; gpu < mesh_.members; ++gpu) orders[0].push_back(gpu);
    orders.emplace_back(orders[0].rbegin(), orders[0].rend());
    for (std::size_t next = 0; static_cast<int>(best_.size()) < most_; ++next) {
      if (!take_relayed(orders[next % 2])) return;
      best_.push_back(orders[next % 2]);
    }
  }

  bool take_relayed(const Order& order) {
    const std::vector<int> before = left_;
    const std::size_t hops = order.size() - (open_ ? 1 : 0);
    for (std::size_t i = 0; i < hops; ++i) {
      if (take_hop(order[i], order[(i + 1) % order.size()])) continue;
      left_ = before;
      return false;
    }
    return true;
  }

  bool take_hop(int from, int to) {
    if (left(from, to) > 0) {
      --left(from, to);
      return true;
    }
    int best = -1;
    for (int middle = 0; middle < mesh_.size; ++middle) {
      if (middle == from || middle == to || left(from, middle) == 0 || left(middle, to) == 0) continue;
      if (best < 0 || std::min(left(from, middle), left(middle, to)) > std::min(left(from, best), left(best, to))) {
        best = middle;
      }
    }
    if (best < 0) return false;
    --left(from, best);
    --left(best, to);
    return true;
  }

  const Mesh& mesh_;
  int most_;
  bool open_;
  std::vector<int> left_;
  std::vector<Order> chosen_;
  std::vector<Order> best_;
  int steps_ = 0;
};

}  // namespace

Packing pack_rings(const Mesh& mesh, double speed, int most, bool open) {
  return Packer(mesh, speed, most, open).pack();
}

}  // namespace tandem::sim::nccl
