// Grouped sends and receives: every GPU sends a part to every other one.
#include <algorithm>
#include <vector>

#include "engine/sim/collectives/steps/planned_call.h"

namespace tandem::sim::steps {
namespace {

std::size_t placed(int index) {
  return static_cast<std::size_t>(index);
}

class Pairs {
 public:
  Pairs(const PlannedCall& call, StepGraph& graph) : call_(call), facts_(call.facts()), graph_(graph) {}

  double transfers() const {
    double sum = 0;
    for (std::size_t domain = 0; domain < facts_.domains.size(); ++domain) {
      const auto size = static_cast<double>(facts_.domains[domain].size());
      sum += size * (size - 1 + (facts_.machine.total_gpus - size) * nics_of_gpu(domain));
    }
    return sum;
  }

  // Through a switch a GPU sends to one peer after the other; in a mesh, whose links lead to one peer each, to all at
  // the same time. Beside that it sends to the other domains, one GPU after the other.
  void add() {
    const nccl::Machine& machine = facts_.machine;
    const double part = call_.call.bytes / machine.total_gpus;
    for (std::size_t domain = 0; domain < facts_.domains.size(); ++domain) {
      const int size = static_cast<int>(facts_.domains[domain].size());
      for (int i = 0; i < size; ++i) {
        const bool at_once = machine.intra == nccl::Intra::nvlink_mesh;
        int last = -1;
        for (int step = 1; step < size; ++step) {
          const double copy_s = call_.plan.transfer_s / (at_once ? 1 : size - 1);
          last = send(inside(domain, i, (i + step) % size), part, copy_s, at_once ? -1 : last);
        }
        const int nics = nics_of_gpu(domain);
        for (int nic = 0; nic < nics; ++nic) send_to_others(domain, i, part / nics, nic);
      }
    }
  }

 private:
  void send_to_others(std::size_t domain, int i, double part, int nic) {
    const std::size_t domains = facts_.domains.size();
    const int peers = facts_.machine.total_gpus - static_cast<int>(facts_.domains[domain].size());
    int last = -1;
    for (std::size_t further = 1; further < domains; ++further) {
      const std::size_t to = (domain + further) % domains;
      const int size = static_cast<int>(facts_.domains[to].size());
      for (int step = 0; step < size; ++step) {
        const int peer = (i + step) % size;
        last = send(between(domain, to, peer, i, nic), part, call_.plan.transfer_s / peers, last);
      }
    }
  }

  int send(const Edge& edge, double bytes, double copy_s, int earlier) {
    const int added = graph_.add({.edge = graph_.add_edge(edge), .bytes = bytes, .copy_s = copy_s});
    if (earlier >= 0) graph_.after_sent(added, earlier);
    return added;
  }

  Edge inside(std::size_t domain, int from, int to) const {
    return {.from = facts_.domains[domain][placed(from)], .to = facts_.domains[domain][placed(to)]};
  }

  // NCCL hands what goes to a GPU of another domain to the GPU whose NIC is at the same place as that one's (PXN), so
  // the bytes take the NIC `port` on both sides.
  Edge between(std::size_t domain, std::size_t to, int peer, int sender, int nic) const {
    Edge edge{.from = facts_.domains[domain][placed(sender)],
              .to = facts_.domains[to][placed(peer)],
              .sender = facts_.domains[domain][placed(sender)],
              .crosses_network = true};
    if (facts_.ports.empty()) return edge;
    const nccl::Port& out = port_of(domain, peer, nic);
    const nccl::Port& in = port_of(to, peer, nic);
    edge.from = out.gpu;
    edge.from_nic = out.nic;
    edge.to = in.gpu;
    edge.to_nic = in.nic;
    return edge;
  }

  // Where a domain has several NICs for each GPU, a part goes through as many.
  int nics_of_gpu(std::size_t domain) const {
    if (facts_.ports.empty()) return 1;
    return std::max(1, static_cast<int>(facts_.ports[domain].size() / facts_.domains[domain].size()));
  }

  // The nic-th of those that are nearest to the GPU at this place, or one that is as good.
  const nccl::Port& port_of(std::size_t domain, int place, int nic) const {
    const std::vector<int>& gpus = facts_.domains[domain];
    const std::vector<nccl::Port>& ports = facts_.ports[domain];
    const int gpu = gpus[placed(place) % gpus.size()];
    int left = nic;
    for (const nccl::Port& port : ports) {
      if (port.gpu == gpu && left-- == 0) return port;
    }
    const auto own = std::ranges::find(ports, gpu, &nccl::Port::gpu);
    return own != ports.end() ? *own : ports[placed(place) * ports.size() / gpus.size() % ports.size()];
  }

  const PlannedCall& call_;
  const nccl::Survey& facts_;
  StepGraph& graph_;
};

}  // namespace

bool add_pairs(const PlannedCall& call, StepGraph& graph) {
  Pairs pairs(call, graph);
  if (pairs.transfers() > kMostTransfers) return false;
  pairs.add();
  return true;
}

}  // namespace tandem::sim::steps
