#include "topologies/generators/fabric_builder.h"

#include <algorithm>
#include <numeric>

#include "topologies/base/error.h"
#include "topologies/figures.h"

namespace tandem {
namespace {

void require_fabric(bool condition, const std::string& message) {
  if (!condition) throw ImpossibleError("fabric: " + message);
}

std::string text_of(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

void FabricBuilder::build() {
  require_fabric(fabric_.workers_per_leaf > 0 && fabric_.spines > 0 && fabric_.oversubscription > 0 &&
                     fabric_.leaves_per_pod > 0 && fabric_.cores_per_spine > 0 && fabric_.core_oversubscription > 0,
                 "workers per leaf, leaves per pod, spines, cores and oversubscription must be greater than 0");
  switch (fabric_.kind) {
    case FabricKind::single_switch:
      return add_single_switch();
    case FabricKind::leaf_spine:
      return add_two_levels(1, "leaf");
    case FabricKind::rail:
      return add_two_levels(cables_.size(), "rail");
    case FabricKind::fat_tree:
      return add_three_levels();
    case FabricKind::torus:
      return add_torus();
    case FabricKind::dragonfly:
      return add_dragonfly();
  }
}

NodeIndex FabricBuilder::add_switch(const std::string& name) {
  Node node;
  node.name = "fabric." + name;
  node.kind = NodeKind::network_switch;
  return topology_.add_node(std::move(node));
}

void FabricBuilder::add_single_switch() {
  const NodeIndex leaf = add_switch("switch0");
  for (const std::vector<NodeIndex>& nics : nics_) {
    for (std::size_t nic = 0; nic < nics.size(); ++nic) topology_.add_link(nics[nic], leaf, cables_[nic]);
  }
}

// Connects groups of workers. The NICs of a group are dealt to its leaves in turn.
std::vector<FabricBuilder::Leaves> FabricBuilder::add_leaves(std::size_t leaves_of_a_group, const std::string& name) {
  TANDEM_CHECK(leaves_of_a_group > 0, "a group of no leaves");
  const auto workers_per_leaf = static_cast<std::size_t>(fabric_.workers_per_leaf);
  std::vector<Leaves> groups;
  std::vector<Cable> uplinks;
  for (std::size_t place = 0; place < leaves_of_a_group; ++place) {
    uplinks.push_back(cable_up(leaf_bytes_per_s(place, leaves_of_a_group) / fabric_.oversubscription / fabric_.spines,
                               "NICs of a leaf / oversubscription / spines", place));
  }
  for (std::size_t first = 0; first < nics_.size(); first += workers_per_leaf) {
    Leaves& group = groups.emplace_back(Leaves{{}, uplinks});
    for (std::size_t i = 0; i < leaves_of_a_group; ++i) {
      const std::size_t number = (groups.size() - 1) * leaves_of_a_group + i;
      group.switches.push_back(add_switch(name + std::to_string(number)));
    }
    const std::size_t last = std::min(nics_.size(), first + workers_per_leaf);
    for (std::size_t worker = first; worker < last; ++worker) {
      for (std::size_t nic = 0; nic < cables_.size(); ++nic) {
        topology_.add_link(nics_[worker][nic], group.switches[nic % leaves_of_a_group], cables_[nic]);
      }
    }
  }
  return groups;
}

void FabricBuilder::add_two_levels(std::size_t leaves_of_a_group, const std::string& name) {
  const std::vector<Leaves> groups = add_leaves(leaves_of_a_group, name);
  if (groups.size() * leaves_of_a_group == 1) return;
  for (int i = 0; i < fabric_.spines; ++i) {
    const NodeIndex spine = add_switch("spine" + std::to_string(i));
    for (const Leaves& group : groups) {
      for (std::size_t leaf = 0; leaf < group.switches.size(); ++leaf) {
        topology_.add_link(group.switches[leaf], spine, group.uplinks[leaf]);
      }
    }
  }
}

// Each pod has leaves and spines like a fat tree of two levels.
FabricBuilder::Pods FabricBuilder::add_pods() {
  const std::size_t leaves_of_a_group = fabric_.rails ? cables_.size() : 1;
  const std::vector<Leaves> groups = add_leaves(leaves_of_a_group, fabric_.rails ? "rail" : "leaf");
  const auto groups_per_pod = static_cast<std::size_t>(fabric_.leaves_per_pod);
  Pods pods;
  if (groups.size() * leaves_of_a_group == 1) return pods;
  pods.count = (groups.size() + groups_per_pod - 1) / groups_per_pod;
  for (std::size_t leaf = 0; leaf < leaves_of_a_group; ++leaf) {
    pods.bytes_per_s += groups.front().uplinks[leaf]->bandwidth_bytes_per_s.value *
                        static_cast<double>(std::min(groups_per_pod, groups.size()));
  }
  for (std::size_t pod = 0; pod < pods.count; ++pod) {
    for (int i = 0; i < fabric_.spines; ++i) {
      pods.spines.push_back(add_switch("spine" + std::to_string(pods.spines.size())));
      const std::size_t last = std::min(groups.size(), (pod + 1) * groups_per_pod);
      for (std::size_t group = pod * groups_per_pod; group < last; ++group) {
        for (std::size_t leaf = 0; leaf < leaves_of_a_group; ++leaf) {
          topology_.add_link(groups[group].switches[leaf], pods.spines.back(), groups[group].uplinks[leaf]);
        }
      }
    }
  }
  return pods;
}

// Spine i of every pod has cables to the same cores.
void FabricBuilder::add_three_levels() {
  const Pods pods = add_pods();
  if (pods.count <= 1) return;
  const auto spines = static_cast<std::size_t>(fabric_.spines);
  const Cable uplink = cable_up(pods.bytes_per_s / fabric_.core_oversubscription / fabric_.cores_per_spine,
                                "cables into a spine / oversubscription / cores");
  int cores = 0;
  for (std::size_t place = 0; place < spines; ++place) {
    for (int i = 0; i < fabric_.cores_per_spine; ++i) {
      const NodeIndex core = add_switch("core" + std::to_string(cores++));
      for (std::size_t pod = 0; pod < pods.count; ++pod) {
        topology_.add_link(pods.spines[pod * spines + place], core, uplink);
      }
    }
  }
}

// A leaf reaches every spine of its pod, so that the cheapest route to another pod, up, over and down, crosses one
// cable between pods.
void FabricBuilder::add_dragonfly() {
  const Pods pods = add_pods();
  if (pods.count <= 1) return;
  const auto spines = static_cast<std::size_t>(fabric_.spines);
  const Cable cable = cable_up(pods.bytes_per_s / fabric_.core_oversubscription / static_cast<double>(pods.count - 1),
                               "cables into a spine / oversubscription / other pods");
  for (std::size_t pod = 0; pod < pods.count; ++pod) {
    for (std::size_t other = pod + 1; other < pods.count; ++other) {
      for (std::size_t place = 0; place < spines; ++place) {
        topology_.add_link(pods.spines[pod * spines + place], pods.spines[other * spines + place], cable);
      }
    }
  }
}

// A router beside every machine. Workers fill the last dimension first.
void FabricBuilder::add_torus() {
  const std::vector<int>& sizes = fabric_.dimensions;
  const bool is_valid = !sizes.empty() && std::ranges::all_of(sizes, [](int size) { return size > 0; });
  require_fabric(is_valid, "a torus needs its dimensions");
  std::size_t places = 1;
  for (const int size : sizes) places = std::min<std::size_t>(places * static_cast<std::size_t>(size), 1U << 30);
  require_fabric(places == nics_.size(), "a torus of " + text_of(sizes) + " has another number of machines than " +
                                             std::to_string(nics_.size()));
  std::vector<NodeIndex> routers;
  double bytes_per_s = 0;
  for (const Cable& cable : cables_) bytes_per_s += cable->bandwidth_bytes_per_s.value;
  for (const std::vector<NodeIndex>& nics : nics_) {
    routers.push_back(add_switch("router" + std::to_string(routers.size())));
    for (std::size_t nic = 0; nic < nics.size(); ++nic) topology_.add_link(nics[nic], routers.back(), cables_[nic]);
  }
  const Cable cable = cable_up(bytes_per_s / fabric_.oversubscription, "NICs of a machine / oversubscription");
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension) add_ring(dimension, routers, cable);
}

// Joins each router with the next one along a dimension; two routers by one cable.
void FabricBuilder::add_ring(std::size_t dimension, const std::vector<NodeIndex>& routers, const Cable& cable) {
  const auto size = static_cast<std::size_t>(fabric_.dimensions[dimension]);
  std::size_t stride = 1;
  for (std::size_t later = dimension + 1; later < fabric_.dimensions.size(); ++later) {
    stride *= static_cast<std::size_t>(fabric_.dimensions[later]);
  }
  if (size == 1) return;
  for (std::size_t router = 0; router < routers.size(); ++router) {
    const std::size_t place = router / stride % size;
    if (size == 2 && place == 1) continue;
    const std::size_t next = router + (place + 1 == size ? 1 - size : 1) * stride;  // wraps around, as unsigned does
    topology_.add_link(routers[router], routers[next], cable);
  }
}

// Returns the bandwidth of all NICs of a full leaf.
double FabricBuilder::leaf_bytes_per_s(std::size_t place, std::size_t leaves_of_a_group) const {
  const int workers = std::min(fabric_.workers_per_leaf, static_cast<int>(nics_.size()));
  double down = 0;
  for (std::size_t nic = place; nic < cables_.size(); nic += leaves_of_a_group) {
    down += cables_[nic]->bandwidth_bytes_per_s.value * workers;
  }
  return down;
}

FabricBuilder::Cable FabricBuilder::cable_up(double bytes_per_s, const std::string& source, std::size_t like) const {
  auto model = std::make_shared<LinkModel>(*cables_[like]);
  model->id = kUplink;
  const Figure none{.provenance = model->bandwidth_bytes_per_s.provenance,
                    .source = "counted where a message enters the network"};
  model->hop_latency_s = model->advertised_latency_s = model->transport.empty() ? Figure{} : none;
  model->bandwidth_bytes_per_s.value = bytes_per_s;
  model->bandwidth_bytes_per_s.source = source + "; NIC: " + cables_[like]->bandwidth_bytes_per_s.source;
  return model;
}

}  // namespace tandem
