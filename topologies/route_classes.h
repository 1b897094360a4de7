// Routes between machines that are alike, found once for all ends that are alike.
//
// The ways from a node of one machine to a node of another depend on what the two machines are like, on the switches
// that they are connected to, and on which of them comes first. They are found for the first two ends of a class; all
// other ends of the class have the same ways, over their own machines. Each flow still chooses one of them by its hash.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "topologies/route_search.h"

namespace tandem {

class RouteClasses {
 public:
  RouteClasses(const Topology& topology, const Arcs& arcs);

  // Appends the edges of a route between two different nodes to `hops`. Returns false if it cannot tell: one of them is
  // not in a machine that was added as one of many, or there is no route.
  bool append(NodeIndex from, NodeIndex to, std::uint64_t hash, RouteSearch& search, std::vector<Edge>& hops);

 private:
  static constexpr std::uint32_t kUnlike = static_cast<std::uint32_t>(-1);

  struct Key {
    std::uint32_t home = 0, away = 0;  // classes of machines
    NodeIndex from = 0, to = 0;        // in their machines
    int order = 0;                     // -1, 0, 1: whether home is before, equal to, or after away
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t machines = (std::uint64_t{key.home} << 32) | key.away;
      return Ways::mixed(Ways::mixed(machines) ^ ((std::uint64_t{key.from} << 34) | (std::uint64_t{key.to} << 2)) ^
                         static_cast<std::uint64_t>(key.order + 1));
    }
  };
  // The owner of the link that an edge of a class crosses. The link is numbered within its machine, or among the
  // machine's cables; only a link of the fabric keeps its own number.
  enum class Owner : std::uint8_t { fabric, home, away, home_cable, away_cable };
  struct Class {
    Ways ways;  // edges with the numbers of their owners
    std::vector<Owner> owners;
  };

  void number_machines();
  void connect(const Topology& topology);
  // Finds for each node of a machine a lower bound of the cost of leaving it: the way to the nearest cable, and the
  // cable.
  void measure_exits(const Arcs& arcs);
  bool stays_inside(NodeIndex from, NodeIndex to, Picoseconds cost) const;
  const Class* find_inside(NodeIndex from, NodeIndex to, RouteSearch& search);
  const Class* find_class(const Key& key, NodeIndex from, NodeIndex to, RouteSearch& search);
  Class made_of(Ways ways, int home, int away) const;
  LinkIndex link_of(Owner owner, LinkIndex number, std::uint32_t home, std::uint32_t away) const;

  const Topology& topology_;
  std::vector<std::uint32_t> first_cable_;  // by machine, in cables_
  std::vector<LinkIndex> cables_;           // links between a machine and the fabric, machine by machine
  std::vector<std::uint32_t> kinds_;        // by machine; equal for equal devices and links inside
  std::vector<std::uint32_t> classes_;  // by machine; equal for equal cables too; kUnlike: linked to another machine
  std::vector<std::vector<Picoseconds>> exits_;  // by kind, by node
  std::unordered_map<Key, std::optional<Class>, KeyHash> known_;
  std::unordered_map<Key, std::optional<Class>, KeyHash> inside_;  // by kinds instead of classes
};

}  // namespace tandem
