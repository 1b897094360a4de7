#include "topologies/views/paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "topologies/base/error.h"
#include "topologies/routing.h"

namespace tandem {
namespace {

constexpr std::size_t kMostInMatrix = 256;
constexpr std::size_t kMostRingGpus = 64;

// NVLink's rates of one link in NCCL, by compute capability: NVIDIA/nccl src/graph/topo.h of 2.10 to 2.30.
struct LinkRate {
  int least, most;  // compute capabilities
  double rate;      // GB/s
};
constexpr std::array<LinkRate, 8> kLinkRates{{{60, 69, 18},
                                              {70, 79, 20},
                                              {70, 79, 22},
                                              {80, 85, 20},
                                              {80, 85, 22},
                                              {86, 89, 12},
                                              {90, 99, 20.6},
                                              {100, 139, 40.1}}};

int link_count_of(double bandwidth, std::string_view architecture) {
  if (!architecture.starts_with("sm_")) return 0;
  const int capability = std::atoi(std::string(architecture.substr(3)).c_str());
  for (const LinkRate& one : kLinkRates) {
    if (capability < one.least || capability > one.most) continue;
    const double count = bandwidth / (one.rate * 1e9);
    if (std::round(count) >= 1 && std::abs(count - std::round(count)) < 0.01)
      return static_cast<int>(std::round(count));
  }
  return 0;
}

Path path_along(const Topology& topology, const Route& route) {
  Path path;
  path.bandwidth_bytes_per_s = route.bandwidth_bytes_per_s;
  path.latency_s = route.latency_s;
  bool has_network = false, is_nvlink = true, is_c2c = true;
  int switches = 0, cpus = 0;
  for (std::size_t i = 0; i < route.hops.size(); ++i) {
    const Link link = topology.link(route.hops[i].link);
    const LinkKind kind = link.model->kind;
    has_network = has_network || kind == LinkKind::network;
    is_nvlink = is_nvlink && kind == LinkKind::nvlink;
    is_c2c = is_c2c && (kind == LinkKind::c2c || kind == LinkKind::nvlink);
    if (i + 1 == route.hops.size()) continue;
    const NodeKind between = topology.kind(route.hops[i].forward ? link.to : link.from);
    switches += between == NodeKind::pcie_switch ? 1 : 0;
    cpus += between == NodeKind::cpu ? 1 : 0;
  }
  path.type = has_network    ? PathType::network
              : is_nvlink    ? PathType::nvlink
              : is_c2c       ? PathType::c2c
              : cpus > 1     ? PathType::system
              : cpus == 1    ? PathType::host
              : switches > 1 ? PathType::switches
                             : PathType::one_switch;
  return path;
}

double rate_at(const Topology& topology, NodeIndex node, LinkKind kind) {
  double rate = 0;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    if (topology.link_model(index).kind != kind) continue;
    const Link link = topology.link(index);
    if (link.from == node || link.to == node) rate += link.model->bandwidth_bytes_per_s.value;
  }
  return rate;
}

// Direct links between GPUs as units of the narrowest of them, from which rings are taken one by one.
class RingSearch {
 public:
  RingSearch(const Topology& topology, std::vector<NodeIndex> gpus) : gpus_(std::move(gpus)) {
    const std::size_t count = gpus_.size();
    left_.assign(count * count, 0);
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      if (topology.link_model(index).kind != LinkKind::nvlink) continue;
      const Link link = topology.link(index);
      const auto from = std::find(gpus_.begin(), gpus_.end(), link.from) - gpus_.begin();
      const auto to = std::find(gpus_.begin(), gpus_.end(), link.to) - gpus_.begin();
      if (static_cast<std::size_t>(std::max(from, to)) >= count) continue;
      const double rate = link.model->bandwidth_bytes_per_s.value;
      left(static_cast<std::size_t>(from), static_cast<std::size_t>(to)) += rate;
      left(static_cast<std::size_t>(to), static_cast<std::size_t>(from)) += rate;
      unit_ = unit_ == 0 ? rate : std::min(unit_, rate);
    }
  }

  std::vector<Ring> rings() {
    std::vector<Ring> found;
    while (unit_ > 0 && gpus_.size() > 2 && found.size() < kMostRings) {
      order_ = {0};
      steps_ = 0;
      if (!extend()) break;
      Ring ring;
      ring.bandwidth_bytes_per_s = unit_;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        ring.gpus.push_back(gpus_[order_[i]]);
        const std::size_t next = order_[(i + 1) % order_.size()];
        left(order_[i], next) -= unit_;
        left(next, order_[i]) -= unit_;
      }
      found.push_back(std::move(ring));
    }
    return found;
  }

 private:
  static constexpr std::size_t kMostRings = 32;
  static constexpr int kMostSteps = 200'000;

  double& left(std::size_t from, std::size_t to) { return left_[from * gpus_.size() + to]; }
  bool has_unit(std::size_t from, std::size_t to) { return left(from, to) >= unit_ * 0.999; }

  bool extend() {
    if (++steps_ > kMostSteps) return false;
    if (order_.size() == gpus_.size()) return has_unit(order_.back(), 0);
    for (std::size_t next = 1; next < gpus_.size(); ++next) {
      if (std::find(order_.begin(), order_.end(), next) != order_.end() || !has_unit(order_.back(), next)) continue;
      order_.push_back(next);
      if (extend()) return true;
      order_.pop_back();
    }
    return false;
  }

  std::vector<NodeIndex> gpus_;
  std::vector<double> left_{};
  double unit_ = 0;
  std::vector<std::size_t> order_{};
  int steps_ = 0;
};

}  // namespace

PathMatrix paths_of(const Topology& topology, int worker) {
  PathMatrix matrix;
  matrix.devices = topology.nodes_of(worker, NodeKind::gpu);
  for (const NodeIndex nic : topology.nodes_of(worker, NodeKind::nic)) matrix.devices.push_back(nic);
  if (matrix.devices.size() > kMostInMatrix) matrix.devices.resize(kMostInMatrix);
  Router router(topology);
  for (const NodeIndex from : matrix.devices) {
    for (const NodeIndex to : matrix.devices) {
      Path& path = matrix.paths.emplace_back();
      if (from == to) {
        path.type = PathType::self;
        continue;
      }
      try {
        path = path_along(topology, *router.route(from, to));
      } catch (const Error&) {
        continue;  // no path: DIS
      }
      if (path.type == PathType::nvlink && topology.device(from)) {
        path.links = link_count_of(path.bandwidth_bytes_per_s, topology.device(from)->architecture);
      }
    }
  }
  return matrix;
}

std::string path_text(const Path& path, bool is_amd) {
  switch (path.type) {
    case PathType::self:
      return "X";
    case PathType::nvlink:
      return is_amd ? "XGMI" : path.links > 0 ? "NV" + std::to_string(path.links) : "NVL";
    case PathType::c2c:
      return "C2C";
    case PathType::one_switch:
      return "PIX";
    case PathType::switches:
      return "PXB";
    case PathType::host:
      return "PHB";
    case PathType::system:
      return "SYS";
    case PathType::network:
      return "NET";
    case PathType::none:
      return "DIS";
  }
  TANDEM_UNREACHABLE("a PathType outside its enumerators");
}

std::vector<std::size_t> nearest_nics(const Topology& topology, const PathMatrix& matrix, std::size_t gpu) {
  std::vector<std::size_t> nearest;
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    if (topology.kind(matrix.devices[i]) != NodeKind::nic || matrix.between(gpu, i).type == PathType::none) continue;
    if (!nearest.empty()) {
      const Path& best = matrix.between(gpu, nearest.front());
      const Path& path = matrix.between(gpu, i);
      if (path.type > best.type ||
          (path.type == best.type && path.bandwidth_bytes_per_s < best.bandwidth_bytes_per_s)) {
        continue;
      }
      if (path.type < best.type || path.bandwidth_bytes_per_s > best.bandwidth_bytes_per_s) nearest.clear();
    }
    nearest.push_back(i);
  }
  return nearest;
}

double nvlink_rate_of(const Topology& topology, NodeIndex gpu) {
  return rate_at(topology, gpu, LinkKind::nvlink);
}

std::vector<Ring> nvlink_rings(const Topology& topology, int worker) {
  const auto gpus = topology.nodes_of(worker, NodeKind::gpu);
  return gpus.size() > kMostRingGpus ? std::vector<Ring>{} : RingSearch(topology, gpus).rings();
}

}  // namespace tandem
