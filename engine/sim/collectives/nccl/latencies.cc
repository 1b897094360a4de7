#include "engine/sim/collectives/nccl/latencies.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace tandem::sim::nccl {
namespace {

class LinkLatencies {
 public:
  LinkLatencies(const Topology& topology, const DomainMap& map, std::span<const NodeIndex> gpus, const Survey& survey)
      : topology_(topology), map_(map), gpus_(gpus), survey_(survey) {}

  // Returns what links add to a step inside a domain, in the domain where it is most.
  double inside_us() const {
    double most_us = -std::numeric_limits<double>::infinity();
    for (const std::vector<int>& members : survey_.domains) most_us = std::max(most_us, inside_us(members));
    return most_us;
  }

  // Returns what links add to a step between domains, on average over the ring of domains, in the slowest channel.
  double between_us() const {
    const std::size_t domains = survey_.domains.size();
    std::vector<double> sums_us(survey_.ports.empty() ? 1 : survey_.ports.front().size(), 0);
    for (std::size_t domain = 0; domain < domains; ++domain) {
      const std::size_t next = (domain + 1) % domains;
      for (std::size_t channel = 0; channel < sums_us.size(); ++channel) {
        sums_us[channel] += wire_us(domain, next, channel);
      }
    }
    return *std::ranges::max_element(sums_us) / static_cast<double>(domains);
  }

  // Returns the models of the links that the other functions have looked at.
  std::vector<const LinkModel*> looked_at() const { return with_latency_; }

 private:
  NodeIndex gpu(int position) const { return gpus_[static_cast<std::size_t>(position)]; }

  // On average over the domain's ring: a chunk passes all of it.
  double inside_us(const std::vector<int>& members) const {
    if (members.size() < 2) return 0;
    double sum_us = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      sum_us += step_us(gpu(members[i]), gpu(members[(i + 1) % members.size()]));
    }
    return sum_us / static_cast<double>(members.size());
  }

  double step_us(NodeIndex from, NodeIndex to) const {
    if (survey_.machine.intra == Intra::nvswitch) {
      const auto is_switch = [this](NodeIndex other) { return topology_.kind(other) == NodeKind::nvswitch; };
      return nvlink_us(from, is_switch).value_or(0) + nvlink_us(to, is_switch).value_or(0);
    }
    const auto direct_us = nvlink_us(from, [to](NodeIndex other) { return other == to; });
    return direct_us ? *direct_us : route_us(from, to);
  }

  // Returns the most of a GPU's NVLinks to nodes that `counts`.
  template <typename Counts>
  std::optional<double> nvlink_us(NodeIndex from, Counts&& counts) const {
    std::optional<double> most_us;
    map_.neighbours.each_link(from, LinkKind::nvlink, [&](NodeIndex other, LinkIndex link) {
      note(topology_.link_model(link));
      if (counts(other)) most_us = std::max(most_us.value_or(map_.unusual_us(link)), map_.unusual_us(link));
    });
    return most_us;
  }

  double wire_us(std::size_t domain, std::size_t next, std::size_t channel) const {
    if (survey_.ports.empty())
      return route_us(gpu(survey_.domains[domain].front()), gpu(survey_.domains[next].front()));
    const auto port = [&](std::size_t of) { return survey_.ports[of][channel % survey_.ports[of].size()]; };
    const Port sender = port(domain), receiver = port(next);
    return route_us(gpu(sender.gpu), sender.nic) + route_us(sender.nic, receiver.nic) +
           route_us(receiver.nic, gpu(receiver.gpu));
  }

  double route_us(NodeIndex from, NodeIndex to) const {
    const auto route = map_.router.route(from, to);
    for (const Edge& hop : route->hops) note(topology_.link_model(hop.link));
    return map_.unusual_us(*route);
  }

  void note(const LinkModel& model) const {
    if (std::ranges::find(with_latency_, &model) == with_latency_.end()) with_latency_.push_back(&model);
  }

  const Topology& topology_;
  const DomainMap& map_;
  std::span<const NodeIndex> gpus_;
  const Survey& survey_;
  mutable std::vector<const LinkModel*> with_latency_;
};

}  // namespace

void measure_latencies(const Topology& topology, const DomainMap& map, std::span<const NodeIndex> gpus,
                       Survey& survey) {
  const LinkLatencies latencies(topology, map, gpus, survey);
  survey.machine.link_us = latencies.inside_us();
  if (survey.machine.domains > 1) survey.machine.wire_us = latencies.between_us();
  survey.with_latency = latencies.looked_at();
}

}  // namespace tandem::sim::nccl
