#include "topologies/route_classes.h"

#include <algorithm>
#include <map>
#include <string>

namespace tandem {
namespace {

constexpr std::size_t kMostKnown = 1 << 17;
constexpr Picoseconds kFar = Picoseconds{1} << 62;

}  // namespace

RouteClasses::RouteClasses(const Topology& topology, const Arcs& arcs) : topology_(topology) {
  if (topology.machine_count() == 0) return;
  connect(topology);
  number_machines();
  measure_exits(arcs);
}

void RouteClasses::connect(const Topology& topology) {
  const auto machines = static_cast<std::size_t>(topology.machine_count());
  first_cable_.assign(machines + 1, 0);
  classes_.assign(machines, 0);
  const auto each_cable = [&](auto&& visit) {
    for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
      const Link link = topology.link(index);
      const bool leaves = link.from < topology.machine_nodes();
      const bool enters = link.to < topology.machine_nodes();
      const auto machine_of = [&](NodeIndex node) { return static_cast<std::size_t>(topology.worker(node)); };
      if (leaves && enters) classes_[machine_of(link.from)] = classes_[machine_of(link.to)] = kUnlike;
      if (leaves != enters) visit(machine_of(leaves ? link.from : link.to), index);
    }
  };
  each_cable([this](std::size_t machine, LinkIndex) { ++first_cable_[machine + 1]; });
  for (std::size_t machine = 0; machine < machines; ++machine) first_cable_[machine + 1] += first_cable_[machine];
  cables_.resize(first_cable_.back());
  std::vector<std::uint32_t> next(first_cable_.begin(), first_cable_.end() - 1);
  each_cable([&](std::size_t machine, LinkIndex index) { cables_[next[machine]++] = index; });
}

void RouteClasses::number_machines() {
  std::map<const void*, std::uint32_t> kinds, models;
  std::map<std::u32string, std::uint32_t> known;
  std::u32string description;
  for (std::size_t machine = 0; machine + 1 < first_cable_.size(); ++machine) {
    const void* like = &topology_.machine(static_cast<int>(machine));
    kinds_.push_back(kinds.try_emplace(like, static_cast<std::uint32_t>(kinds.size())).first->second);
    if (classes_[machine] == kUnlike) continue;
    const NodeIndex first = static_cast<NodeIndex>(machine) * topology_.nodes_of_machine();
    description.assign(1, kinds_.back());
    for (std::uint32_t i = first_cable_[machine]; i < first_cable_[machine + 1]; ++i) {
      const Link link = topology_.link(cables_[i]);
      const bool leaves = link.from < topology_.machine_nodes();
      const auto model = models.try_emplace(link.model.get(), static_cast<std::uint32_t>(models.size())).first->second;
      description += {leaves ? U'f' : U't', static_cast<char32_t>(link.direction), static_cast<char32_t>(model),
                      static_cast<char32_t>((leaves ? link.from : link.to) - first),
                      static_cast<char32_t>(leaves ? link.to : link.from)};
    }
    classes_[machine] = known.try_emplace(description, static_cast<std::uint32_t>(known.size())).first->second;
  }
}

// Computes lower bounds. A cable that any machine has at a place counts for all machines, with the cost of the cheapest
// one; links may be crossed in both directions, and routes may pass through GPUs as through other nodes.
void RouteClasses::measure_exits(const Arcs& arcs) {
  Picoseconds least = kFar;
  std::vector<bool> has_cable(topology_.nodes_of_machine());
  for (LinkIndex index = topology_.machine_links(); index < topology_.link_count(); ++index) {
    const Link link = topology_.link(index);
    for (const NodeIndex end : {link.from, link.to}) {
      if (end >= topology_.machine_nodes()) continue;
      has_cable[end % topology_.nodes_of_machine()] = true;
      least = std::min(least, cost_of(*link.model));
    }
  }
  for (std::size_t machine = 0; machine < kinds_.size(); ++machine) {
    if (kinds_[machine] < exits_.size()) continue;
    std::vector<Picoseconds>& exits = exits_.emplace_back(topology_.nodes_of_machine(), kFar);
    const Arcs::Machine& inside = arcs.machine(static_cast<int>(machine));
    for (std::size_t node = 0; node < exits.size(); ++node) exits[node] = has_cable[node] ? least : kFar;
    for (bool is_better = true; is_better;) {  // machines are small
      is_better = false;
      for (std::size_t node = 0; node < exits.size(); ++node) {
        for (std::uint32_t i = inside.starts[node]; i < inside.starts[node + 1]; ++i) {
          const Arc& arc = inside.arcs[i];
          for (const auto& [near, far] : {std::pair{arc.to, node}, {node, arc.to}}) {
            if (exits[far] <= exits[near] + arc.cost) continue;
            exits[far] = exits[near] + arc.cost;
            is_better = true;
          }
        }
      }
    }
  }
}

// Returns whether a route of this cost inside one machine is cheaper than any route that leaves it.
bool RouteClasses::stays_inside(NodeIndex from, NodeIndex to, Picoseconds cost) const {
  const NodeIndex size = topology_.nodes_of_machine();
  const auto machine = static_cast<std::size_t>(topology_.worker(from));
  if (classes_[machine] == kUnlike) return false;
  const std::vector<Picoseconds>& exits = exits_[kinds_[machine]];
  return cost < exits[from % size] + exits[to % size];
}

bool RouteClasses::append(NodeIndex from, NodeIndex to, std::uint64_t hash, RouteSearch& search,
                          std::vector<Edge>& hops) {
  if (from >= topology_.machine_nodes() || to >= topology_.machine_nodes()) return false;
  const NodeIndex size = topology_.nodes_of_machine();
  const NodeIndex home = from / size;
  const NodeIndex away = to / size;
  Key key{classes_[home], classes_[away], from % size, to % size, home < away ? -1 : home > away ? 1 : 0};
  if (key.home == kUnlike || key.away == kUnlike) return false;
  const Class* found = home == away ? find_inside(from, to, search) : nullptr;
  if (found == nullptr) found = find_class(key, from, to, search);
  if (found == nullptr) return false;
  const std::size_t first = hops.size();
  found->ways.walk(hash, [&](std::size_t way) {
    const Edge& edge = found->ways.ways[way].edge;
    hops.push_back({link_of(found->owners[way], edge.link, home, away), edge.forward});
  });
  std::reverse(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end());
  return true;
}

const RouteClasses::Class* RouteClasses::find_class(const Key& key, NodeIndex from, NodeIndex to, RouteSearch& search) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second ? &*found->second : nullptr;
  if (known_.size() >= kMostKnown) known_.clear();
  std::optional<Ways> ways = search.find(from, to);
  std::optional<Class>& made = known_[key];
  if (ways) made = made_of(std::move(*ways), topology_.worker(from), topology_.worker(to));
  return made ? &*made : nullptr;
}

// Finds routes that stay inside every machine of this kind, whatever it is connected to.
const RouteClasses::Class* RouteClasses::find_inside(NodeIndex from, NodeIndex to, RouteSearch& search) {
  const NodeIndex size = topology_.nodes_of_machine();
  const int machine = topology_.worker(from);
  const std::uint32_t kind = kinds_[static_cast<std::size_t>(machine)];
  const auto [found, is_new] = inside_.try_emplace(Key{kind, kind, from % size, to % size, 0});
  if (is_new) {
    auto ways = search.find(from, to, RouteSearch::Within::machine);
    if (ways && stays_inside(from, to, search.cost())) found->second = made_of(std::move(*ways), machine, machine);
  }
  return found->second ? &*found->second : nullptr;
}

RouteClasses::Class RouteClasses::made_of(Ways ways, int home, int away) const {
  Class made{std::move(ways), {}};
  const auto cable_of = [this](int machine, LinkIndex link) -> std::optional<LinkIndex> {
    const auto index = static_cast<std::size_t>(machine);
    const auto first = cables_.begin() + first_cable_[index];
    const auto last = cables_.begin() + first_cable_[index + 1];
    const auto at = std::lower_bound(first, last, link);  // cables are in the order of their links
    if (at == last || *at != link) return std::nullopt;
    return static_cast<LinkIndex>(at - first);
  };
  for (Ways::Way& way : made.ways.ways) {
    LinkIndex& link = way.edge.link;
    if (link < topology_.machine_links()) {
      const bool is_home = static_cast<int>(link / topology_.links_of_machine()) == home;
      made.owners.push_back(is_home ? Owner::home : Owner::away);
      link %= topology_.links_of_machine();
    } else if (const auto of_home = cable_of(home, link)) {
      made.owners.push_back(Owner::home_cable);
      link = *of_home;
    } else if (const auto of_away = cable_of(away, link)) {
      made.owners.push_back(Owner::away_cable);
      link = *of_away;
    } else {
      made.owners.push_back(Owner::fabric);
    }
  }
  return made;
}

LinkIndex RouteClasses::link_of(Owner owner, LinkIndex number, std::uint32_t home, std::uint32_t away) const {
  switch (owner) {
    case Owner::fabric:
      return number;
    case Owner::home:
      return home * topology_.links_of_machine() + number;
    case Owner::away:
      return away * topology_.links_of_machine() + number;
    case Owner::home_cable:
      return cables_[first_cable_[home] + number];
    case Owner::away_cable:
      return cables_[first_cable_[away] + number];
  }
  return number;
}

}  // namespace tandem
