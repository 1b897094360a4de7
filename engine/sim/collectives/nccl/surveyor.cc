#include "engine/sim/collectives/nccl/surveyor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "engine/sim/collectives/nccl/constants.h"
#include "engine/sim/collectives/nccl/domain_map.h"
#include "engine/sim/collectives/nccl/latencies.h"
#include "engine/sim/collectives/nccl/link_unit.h"
#include "engine/sim/collectives/nccl/nic_choice.h"
#include "engine/sim/collectives/nccl/ring_packing.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kGiga = 1e9;

// The survey of one group.
class GroupSurvey {
 public:
  GroupSurvey(const Topology& topology, DomainMap& map, std::span<const NodeIndex> gpus)
      : topology_(topology), map_(map), nics_(topology, map), gpus_(gpus) {}

  Survey run() {
    group_by_domain();
    describe_device();
    Machine& machine = survey_.machine;
    machine.domains = static_cast<int>(survey_.domains.size());
    machine.gpus = static_cast<int>(survey_.domains.front().size());
    machine.total_gpus = static_cast<int>(gpus_.size());
    if (!describe_switch() && !describe_mesh()) describe_pcie();
    if (machine.domains > 1) describe_network();
    if (map_.has_unusual_links()) measure_latencies(topology_, map_, gpus_, survey_);
    return std::move(survey_);
  }

 private:
  NodeIndex gpu(int position) const { return gpus_[static_cast<std::size_t>(position)]; }
  const std::vector<int>& first() const { return survey_.domains.front(); }

  void group_by_domain() {
    std::map<int, std::size_t> places;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const auto [place, is_new] = places.emplace(map_.domain_of(gpus_[i]), survey_.domains.size());
      if (is_new) survey_.domains.emplace_back();
      survey_.domains[place->second].push_back(static_cast<int>(i));
    }
    std::stable_sort(survey_.domains.begin(), survey_.domains.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const NodeIndex index : known_nodes(first())) {
      const Node& node = topology_.node(index);
      if (node.kind == NodeKind::gpu) domain_gpus_.push_back(index);
      if (node.kind == NodeKind::nic) domain_nics_.push_back(index);
      if (node.kind == NodeKind::cpu && node.device) {
        survey_.machine.has_amd_host |= node.device->name.starts_with("AMD");
      }
    }
  }

  // Returns the nodes of these members' domain, without the machines that have none of them: NCCL knows only machines
  // with a rank of the group.
  std::vector<NodeIndex> known_nodes(const std::vector<int>& members) const {
    std::set<int> machines = {kNoWorker};
    for (const int position : members) machines.insert(topology_.worker(gpu(position)));
    std::vector<NodeIndex> nodes = map_.nodes_of(map_.domain_of(gpu(members.front())));
    std::erase_if(nodes, [&](NodeIndex node) { return !machines.contains(topology_.worker(node)); });
    return nodes;
  }

  void describe_device() {
    const DeviceModel& device = *topology_.device(gpu(first().front()));
    survey_.machine.capability = capability_of(device.architecture);
    survey_.machine.clock_ghz = device.boost_clock_hz.value / kGiga;
    unit_ = unit_of(device.architecture, survey_.machine.capability);
  }

  bool describe_switch() {
    Machine& machine = survey_.machine;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    int slowest = -1;
    for (const int position : first()) {
      double gbs = 0;
      map_.neighbours.each(gpu(position), LinkKind::nvlink, [&](NodeIndex other, const LinkModel& model) {
        if (topology_.kind(other) == NodeKind::nvswitch) gbs += gbs_of(model);
      });
      if (gbs < least) slowest = position;
      least = std::min(least, gbs);
      most = std::max(most, gbs);
    }
    if (least <= 0 && most > 0) survey_.without_nvlink = slowest;
    if (least <= 0) return false;
    const NvlinkRate rate = unit_.rate_of(least, least);
    machine.intra = Intra::nvswitch;
    machine.gpu_gbs = rate.nccl_gbs;
    machine.gpu_wire_gbs = rate.wire_gbs;
    return true;
  }

  bool describe_mesh() {
    std::vector<NodeIndex> order;
    for (const int position : first()) order.push_back(gpu(position));
    for (const NodeIndex node : domain_gpus_) {
      if (std::find(order.begin(), order.end(), node) == order.end()) order.push_back(node);
    }
    std::map<NodeIndex, std::size_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
    std::vector<double> gbs(order.size() * order.size(), 0);
    double most = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      double all = 0;
      map_.neighbours.each(order[i], LinkKind::nvlink, [&](NodeIndex other, const LinkModel& model) {
        const auto place = places.find(other);
        if (place == places.end()) return;
        gbs[i * order.size() + place->second] += gbs_of(model);
        all += gbs_of(model);
      });
      most = std::max(most, all);
    }
    if (!is_connected(gbs, order.size()) && !has_ring(gbs, order.size())) return false;
    Machine& machine = survey_.machine;
    machine.intra = Intra::nvlink_mesh;
    double wire = 0;
    double nccl = 0;
    for (double& pair : gbs) {
      if (pair <= 0) continue;
      const NvlinkRate rate = unit_.rate_of(pair, most);
      wire += rate.wire_gbs;
      nccl += rate.nccl_gbs;
      pair = rate.nccl_gbs;
    }
    machine.mesh_gbs = std::move(gbs);
    machine.mesh_wire_factor = nccl > 0 ? wire / nccl : 1;
    return true;
  }

  // Returns whether the group's GPUs in the first domain reach each other over NVLink; other GPUs may be crossed.
  bool is_connected(const std::vector<double>& gbs, std::size_t size) const {
    const std::size_t members = first().size();
    if (members == 1) return false;
    for (std::size_t a = 0; a < members; ++a) {
      const std::size_t b = (a + 1) % members;
      bool reaches = gbs[a * size + b] > 0;
      for (std::size_t middle = 0; middle < size && !reaches; ++middle) {
        reaches = gbs[a * size + middle] > 0 && gbs[middle * size + b] > 0;
      }
      if (!reaches) return false;
    }
    return true;
  }

  // Returns whether a ring can pass the group's GPUs in the first domain over links alone, in any order.
  bool has_ring(const std::vector<double>& gbs, std::size_t size) const {
    double least = std::numeric_limits<double>::infinity();
    for (const double pair : gbs) least = pair > 0 ? std::min(least, pair) : least;
    if (!std::isfinite(least) || first().size() < 2) return false;
    const Packing packing = pack_rings({static_cast<int>(size), static_cast<int>(first().size()), gbs}, least, 1,
                                       survey_.domains.size() > 1);
    return !packing.orders.empty() && !packing.crosses_gpus;
  }

  // The slowest route of the ring through the first domain.
  void describe_pcie() {
    Machine& machine = survey_.machine;
    const std::size_t members = first().size();
    if (members == 1) {
      machine.intra = Intra::nvswitch;  // there is no other GPU to reach
      return;
    }
    double gbs = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < members; ++i) {
      const auto route = map_.router.route(gpu(first()[i]), gpu(first()[(i + 1) % members]));
      gbs = std::min(gbs, route->bandwidth_bytes_per_s / kGiga);
    }
    machine.intra = topology_.facts().p2p ? Intra::pcie : Intra::staged;
    machine.gpu_gbs = gbs;
    machine.gpu_wire_gbs = topology_.facts().p2p ? kPcieShare * gbs : std::min(staged_gbs(), kPcieShare * gbs);
  }

  // Returns what a ring through memory of the host reaches, which is not what NCCL plans with (gpu_gbs): every GPU of
  // the first domain writes to a processor's memory and reads from it at the same time, over links that those below one
  // switch share.
  double staged_gbs() const {
    std::map<LinkIndex, int> uses;
    std::set<NodeIndex> hosts;
    double gbs = kStagedAcrossGbs;
    for (const int position : first()) {
      const auto host = nearest_host(gpu(position));
      if (!host) return gbs;
      hosts.insert(*host);
      for (const Edge& hop : map_.router.route(gpu(position), *host)->hops) ++uses[hop.link];
    }
    if (hosts.size() == 1) gbs = std::numeric_limits<double>::infinity();
    for (const auto& [link, count] : uses)
      gbs = std::min(gbs, kStagedShare * gbs_of(topology_.link_model(link)) / count);
    return gbs;
  }

  std::optional<NodeIndex> nearest_host(NodeIndex of) const {
    std::optional<NodeIndex> nearest;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const NodeIndex host : topology_.nodes_of(topology_.worker(of), NodeKind::cpu)) {
      if (!map_.router.connects(of, host)) continue;
      const std::size_t hops = map_.router.route(of, host)->hops.size();
      if (hops < least) nearest = host;
      least = std::min(least, hops);
    }
    return nearest;
  }

  void describe_network() {
    Machine& machine = survey_.machine;
    if (first().size() != domain_gpus_.size()) {
      domain_nics_ = nics_.chosen(domain_gpus_, domain_nics_, gpus_at(first())).nics;
    }
    bool uses_c2c = true;
    for (const NodeIndex nic : domain_nics_) {
      double gbs = 0;
      map_.neighbours.each(nic, LinkKind::network, [&](NodeIndex, const LinkModel& model) {
        gbs = std::max(gbs, gbs_of(model));
        describe_transport(model);
      });
      if (gbs <= 0) continue;
      ++machine.nics;
      machine.nic_gbs = machine.nics == 1 ? gbs : std::min(machine.nic_gbs, gbs);
      machine.nics_are_near &= nics_.has_near_gpu(nic);
      uses_c2c &= nics_.has_gpu_over_c2c(nic);
    }
    machine.nics_use_c2c = uses_c2c && machine.nics > 0;
    if (machine.nics > 0) return place_ports();
    // The description of the machines has no NICs: assumes one link, as wide as the route.
    const auto route = map_.router.route(gpu(first().front()), gpu(survey_.domains[1].front()));
    machine.nics = 1;
    machine.nic_gbs = route->bandwidth_bytes_per_s / kGiga;
    machine.nics_are_near = false;
    for (const Edge& hop : route->hops) {
      const LinkModel& model = topology_.link_model(hop.link);
      if (model.kind == LinkKind::network) describe_transport(model);
    }
  }

  void describe_transport(const LinkModel& model) {
    Machine& machine = survey_.machine;
    machine.hop_us = std::max(machine.hop_us, model.hop_latency_s.value * 1e6);
    machine.advertised_us = std::max(machine.advertised_us, model.advertised_latency_s.value * 1e6);
    const std::string& transport = model.transport;
    survey_.transport = transport;
    machine.lacks_sharp |= transport != "infiniband";
    const bool needs_none = transport == "infiniband" || transport == "roce";
    survey_.hop_is_known &= needs_none || model.hop_latency_s.value > 0 || !model.hop_latency_s.source.empty();
    const Figure& hop = model.hop_latency_s;
    if (hop.provenance == Provenance::assumed && hop.has_range()) survey_.assumed_hop = &model;
    if (transport == "socket") machine.lacks_ll128 = true;  // the host copies, whatever is between NIC and GPU
    if (transport == "efa") machine.lacks_ll128 |= machine.capability < 90;
  }

  std::vector<NodeIndex> gpus_at(const std::vector<int>& positions) const {
    std::vector<NodeIndex> gpus;
    for (const int position : positions) gpus.push_back(gpu(position));
    return gpus;
  }

  // Returns the NICs of a domain that the group uses. Domains whose members have the same places use the same NICs.
  ChosenNics nics_of(const std::vector<int>& members) {
    std::vector<NodeIndex> gpus, nics;
    for (const NodeIndex node : known_nodes(members)) {
      if (topology_.kind(node) == NodeKind::gpu) gpus.push_back(node);
      if (nics_.is_connected(node)) nics.push_back(node);
    }
    if (members.size() == gpus.size()) return {.nics = nics, .first_choices = nics.size()};
    std::vector<std::size_t> places;
    for (const int position : members) places.push_back(place_in(gpus, gpu(position)));
    auto [known, is_new] = chosen_.try_emplace({places, gpus.size(), nics.size()});
    if (is_new) {
      const ChosenNics chosen = nics_.chosen(gpus, nics, gpus_at(members));
      for (const NodeIndex nic : chosen.nics) known->second.places.push_back(place_in(nics, nic));
      known->second.first_choices = chosen.first_choices;
    }
    ChosenNics chosen{.first_choices = known->second.first_choices};
    for (const std::size_t place : known->second.places) chosen.nics.push_back(nics[place]);
    return chosen;
  }

  static std::size_t place_in(const std::vector<NodeIndex>& nodes, NodeIndex node) {
    return static_cast<std::size_t>(std::ranges::find(nodes, node) - nodes.begin());
  }

  // Spreads the NICs of every domain over its GPUs as they are spread in the first one.
  void place_ports() {
    const std::vector<std::size_t> nearest = nearest_gpus();
    for (const std::vector<int>& gpus : survey_.domains) {
      std::vector<Port>& ports = survey_.ports.emplace_back();
      const ChosenNics chosen = nics_of(gpus);
      survey_.first_choices.push_back(chosen.first_choices);
      for (const NodeIndex node : chosen.nics) {
        double gbs = 0;
        map_.neighbours.each(node, LinkKind::network, [&](NodeIndex, const LinkModel& model) {
          gbs = std::max(gbs, gbs_of(model));
          describe_transport(model);
        });
        const std::size_t place = ports.size() < nearest.size() ? nearest[ports.size()] : ports.size();
        ports.push_back({node, gpus[place % gpus.size()], gbs});
      }
      if (!ports.empty()) continue;
      survey_.ports.clear();
      return;
    }
  }

  // Returns for each NIC of the first domain a GPU with the shortest way to it, and uses all GPUs equally often.
  std::vector<std::size_t> nearest_gpus() {
    std::vector<std::size_t> nearest;
    std::vector<int> uses(first().size(), 0);
    for (const NodeIndex nic : domain_nics_) {
      if (!nics_.is_connected(nic)) continue;
      std::pair<std::size_t, int> best{std::numeric_limits<std::size_t>::max(), 0};
      std::size_t place = 0;
      for (std::size_t i = 0; i < first().size(); ++i) {
        const auto route = map_.router.route(gpu(first()[i]), nic);
        const std::pair<std::size_t, int> found{route->hops.size(), uses[i]};
        if (found >= best) continue;
        best = found;
        place = i;
      }
      ++uses[place];
      nearest.push_back(place);
      limit_by_pcie(*map_.router.route(gpu(first()[place]), nic));
    }
    return nearest;
  }

  // A NIC is no faster than the way to it.
  void limit_by_pcie(const Route& route) {
    const double gbs = route.bandwidth_bytes_per_s / kGiga / kCosts.nic_share;
    survey_.machine.nic_gbs = std::min(survey_.machine.nic_gbs, gbs);
  }

  const Topology& topology_;
  DomainMap& map_;
  NicChoice nics_;
  std::span<const NodeIndex> gpus_;
  LinkUnit unit_{};
  std::vector<NodeIndex> domain_gpus_;  // all GPUs of the first domain, in the machines that have some of the group
  std::vector<NodeIndex> domain_nics_;
  // The places of the chosen NICs, by the places of members among a domain's GPUs and its numbers of GPUs and NICs.
  struct ChosenPlaces {
    std::vector<std::size_t> places{};
    std::size_t first_choices = 0;
  };
  std::map<std::tuple<std::vector<std::size_t>, std::size_t, std::size_t>, ChosenPlaces> chosen_;
  Survey survey_;
};

}  // namespace

Surveyor::Surveyor(const Topology& topology, Router& router)
    : topology_(topology), map_(std::make_unique<DomainMap>(topology, router)) {}

Surveyor::~Surveyor() = default;

Survey Surveyor::survey(std::span<const NodeIndex> gpus) const {
  TANDEM_CHECK(!gpus.empty(), "a survey of no GPU");
  return GroupSurvey(topology_, *map_, gpus).run();
}

}  // namespace tandem::sim::nccl
