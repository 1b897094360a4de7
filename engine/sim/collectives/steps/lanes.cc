#include "engine/sim/collectives/steps/lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem::sim::steps {
namespace {

constexpr int kMostLanes = 64;

std::size_t nth(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

Lanes::Lanes(const nccl::Communicator& communicator, const nccl::Plan& plan) : communicator_(communicator) {
  const nccl::Survey& facts = communicator.facts();
  std::vector<int> domain_of(nth(facts.machine.total_gpus));
  for (std::size_t domain = 0; domain < facts.domains.size(); ++domain) {
    for (const int gpu : facts.domains[domain]) domain_of[nth(gpu)] = static_cast<int>(domain);
  }
  hops_.resize(facts.domains.size());
  for (const nccl::Flow& flow : plan.flows) {
    const int from = domain_of[nth(flow.from)];
    if (from != domain_of[nth(flow.to)]) hops_[nth(from)].push_back(flow);
  }
  const auto lacks_hop = [](const auto& hops) { return hops.empty(); };
  if (hops_.size() > 1 && std::ranges::any_of(hops_, lacks_hop)) return;
  std::size_t most_hops = 1;
  for (const auto& hops : hops_) most_hops = std::max(most_hops, hops.size());
  const int orders = std::max(1, static_cast<int>(communicator.graphs().orders.size()));
  const int ports = static_cast<int>(most_hops);
  count_ = std::lcm(orders, ports);
  if (count_ > kMostLanes) count_ = std::max(orders, ports);
  for (int domain = 0; domain < static_cast<int>(facts.domains.size()); ++domain) {
    std::vector<std::vector<int>>& chains = chains_.emplace_back();
    for (int lane = 0; lane < count_; ++lane) chains.push_back(chain_of(lane, domain));
  }
}

// In a mesh a lane follows an order; else it begins at the GPU at which it enters.
std::vector<int> Lanes::chain_of(int lane, int domain) const {
  const nccl::Survey& facts = communicator_.facts();
  const std::vector<nccl::Order>& orders = communicator_.graphs().orders;
  const std::vector<int>& gpus = facts.domains[nth(domain)];
  std::vector<int> chain = gpus;
  if (!orders.empty() && static_cast<int>(gpus.size()) == facts.machine.gpus) {
    const nccl::Order& order = orders[nth(lane) % orders.size()];
    for (std::size_t i = 0; i < gpus.size(); ++i) chain[i] = gpus[nth(order[i])];
    return chain;
  }
  const int domains = static_cast<int>(facts.domains.size());
  if (domains == 1) return chain;
  const Edge entry = between(lane, (domain + domains - 1) % domains, domain);
  const auto first = std::ranges::find(chain, entry.to);
  if (first != chain.end()) std::rotate(chain.begin(), first, chain.end());
  return chain;
}

Edge Lanes::between(int lane, int from, int to) const {
  const int all = static_cast<int>(hops_.size());
  const auto of_lane = [&](int domain) -> const nccl::Flow& { return hops(domain)[nth(lane) % hops(domain).size()]; };
  const nccl::Flow& out = of_lane(from);
  const nccl::Flow& in = of_lane((to + all - 1) % all);
  return {.from = out.from, .to = in.to, .from_nic = out.from_nic, .to_nic = in.to_nic, .crosses_network = true};
}

double Lanes::copy_share(int lane) const {
  const nccl::Survey& facts = communicator_.facts();
  if (domains() < 2 || facts.ports.empty()) return 1;
  double slowest_gbs = std::numeric_limits<double>::infinity(), lane_gbs = slowest_gbs;
  for (std::size_t domain = 0; domain < facts.ports.size(); ++domain) {
    const auto next = (domain + 1) % facts.ports.size();
    const Edge edge = between(lane, static_cast<int>(domain), static_cast<int>(next));
    for (const nccl::Port& port : facts.ports[domain]) {
      if (domain == 0) slowest_gbs = std::min(slowest_gbs, port.gbs);  // with which the plan counts
      if (port.nic == edge.from_nic) lane_gbs = std::min(lane_gbs, port.gbs);
    }
    for (const nccl::Port& port : facts.ports[next]) {
      if (port.nic == edge.to_nic) lane_gbs = std::min(lane_gbs, port.gbs);
    }
  }
  if (!std::isfinite(lane_gbs) || lane_gbs <= slowest_gbs) return 1;
  const double inside_share = communicator_.mechanism().nic_gbs() / communicator_.graphs().ring_wire_gbs;
  return std::min(1.0, std::max(slowest_gbs / lane_gbs, inside_share));
}

Ring Lanes::ring(int lane) const {
  Ring ring;
  for (int domain = 0; domain < domains(); ++domain) {
    const std::vector<int>& gpus = chain(lane, domain);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      ring.gpus.push_back(gpus[i]);
      const bool leaves = domains() > 1 && i + 1 == gpus.size();
      ring.edges.push_back(leaves ? between(lane, domain, (domain + 1) % domains())
                                  : Edge{.from = gpus[i], .to = gpus[(i + 1) % gpus.size()]});
      ring.edges.back().sender = gpus[i];
    }
  }
  return ring;
}

}  // namespace tandem::sim::steps
