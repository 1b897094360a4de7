#include "topologies/readers/simgrid_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <set>

#include "topologies/base/error.h"
#include "topologies/routing.h"

namespace tandem {
namespace {

constexpr int kMostRounds = 16;  // of turning links into media

// The points where links end. Points are merged as routes are read, but points that are nodes never with each other.
class LinkPoints {
 public:
  std::size_t add(bool is_node) {
    parents_.push_back(parents_.size());
    is_node_.push_back(is_node);
    return parents_.size() - 1;
  }
  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  // Returns false if both are nodes.
  bool merge(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return true;
    if (is_node_[a] && is_node_[b]) return false;
    if (is_node_[b]) std::swap(a, b);
    parents_[b] = a;
    return true;
  }
  bool is_node(std::size_t i) { return is_node_[root(i)]; }

 private:
  std::vector<std::size_t> parents_{};
  std::vector<bool> is_node_{};
};

// A point, or one direction of a medium.
struct RoutePlace {
  bool is_medium = false;
  std::size_t index = 0;  // of a point, or of a link
  bool is_down = false;
  auto operator<=>(const RoutePlace&) const = default;
};

// Finds the ends of all links except media, and what media are connected to, by following every route once.
class RouteMerger {
 public:
  RouteMerger(const Platform& platform, const std::vector<bool>& media) : platform_(platform), media_(media) {
    for (std::size_t i = 0; i < platform.graph.nodes.size(); ++i) points_.add(true);
    for (std::size_t i = 0; i < 2 * platform.links.size(); ++i) points_.add(false);
    is_used_.resize(platform.links.size());
    for (const PlatformRoute& route : platform.routes) follow(route);
    for (std::size_t link = 0; link < platform.links.size(); ++link) {
      if (is_plain(link) && root(head(link)) == root(head(link) + 1)) without_ends_.insert(link);
    }
  }

  // The links that do not have two ends.
  const std::set<std::size_t>& without_ends() const { return without_ends_; }

  bool is_plain(std::size_t link) const { return is_used_[link] && !media_[link]; }
  std::size_t head(std::size_t link) const { return platform_.graph.nodes.size() + 2 * link; }
  std::size_t root(std::size_t point) { return points_.root(point); }
  // Nodes that routes between other nodes pass through.
  const std::set<std::size_t>& crossed() const { return crossed_; }
  // The places that routes enter, with those that they enter them from.
  std::set<std::pair<RoutePlace, RoutePlace>> joins() {
    std::set<std::pair<RoutePlace, RoutePlace>> merged;
    const auto rooted = [&](RoutePlace place) {
      if (!place.is_medium) place.index = root(place.index);
      return place;
    };
    for (const auto& [from, to] : joins_) merged.emplace(rooted(from), rooted(to));
    return merged;
  }

 private:
  using Hops = std::vector<PlatformHop>;

  void follow(const PlatformRoute& route) {
    const Hops& hops = route.hops;
    for (const PlatformHop& hop : hops) is_used_[hop.link] = true;
    const auto is_medium = [&](const PlatformHop& hop) { return media_[hop.link]; };
    const auto first = std::find_if(hops.begin(), hops.end(), is_medium);
    std::size_t front = route.from;
    for (auto hop = hops.begin(); hop != first; ++hop) {
      if (hop != hops.begin()) pass(front);
      front = cross(hop->link, front);
    }
    if (first == hops.end()) {
      if (!hops.empty() && !points_.merge(front, route.to)) without_ends_.insert(hops.back().link);
      return;
    }
    if (first != hops.begin()) pass(front);
    const auto last = std::find_if(hops.rbegin(), hops.rend(), is_medium);
    std::size_t back = route.to;
    for (auto hop = hops.rbegin(); hop != last; ++hop) pass(back = cross(hop->link, back));
    follow_media(route, front, back, first, last.base());
  }

  // Follows a route from the first medium to the point after the last one.
  void follow_media(const PlatformRoute& route, std::size_t front, std::size_t back, Hops::const_iterator first,
                    Hops::const_iterator end) {
    RoutePlace here{false, front, false};
    for (auto hop = first; hop != end; ++hop) {
      if (media_[hop->link]) {
        const RoutePlace medium = medium_of(*hop);
        join(here, medium, route.is_symmetrical);
        here = medium;
      } else {
        if (here.is_medium) {  // only earlier routes say which of the link's ends is the near one
          const RoutePlace tail{false, head(hop->link) + 1, false};
          const RoutePlace near = beside_.contains({here, tail}) ? tail : RoutePlace{false, head(hop->link), false};
          join(here, near, route.is_symmetrical);
          here = near;
        }
        pass(here.index = cross(hop->link, here.index));
      }
    }
    join(here, {false, back, false}, route.is_symmetrical);
  }

  RoutePlace medium_of(const PlatformHop& hop) const {
    const PlatformLink& link = platform_.links[hop.link];
    return {true, hop.link, hop.is_down && link.direction == Direction::duplex && !link.is_fatpipe};
  }

  RoutePlace turned(RoutePlace place) const {
    return place.is_medium ? medium_of({place.index, !place.is_down}) : place;
  }

  void join(const RoutePlace& from, const RoutePlace& to, bool is_symmetrical) {
    joins_.emplace(from, to);
    if (is_symmetrical) joins_.emplace(turned(to), turned(from));
    beside_.emplace(from, to);
    beside_.emplace(to, from);
  }

  // Returns the other end of a link that is entered at a point.
  std::size_t cross(std::size_t link, std::size_t here) {
    const std::size_t near = head(link), far = near + 1;
    const bool is_turned = root(far) == root(here) && root(near) != root(here);
    if (!is_turned && !points_.merge(near, here) && !points_.merge(far, here)) without_ends_.insert(link);
    return root(is_turned || root(near) != root(here) ? near : far);
  }

  void pass(std::size_t point) {
    if (points_.is_node(point)) crossed_.insert(root(point));
  }

  const Platform& platform_;
  const std::vector<bool>& media_;
  LinkPoints points_{};
  std::vector<bool> is_used_{};
  std::set<std::size_t> without_ends_{}, crossed_{};
  std::set<std::pair<RoutePlace, RoutePlace>> joins_{}, beside_{};
};

// Builds nodes and links from the merged points.
class RouteGraph {
 public:
  RouteGraph(const Platform& platform, RouteMerger& merger)
      : platform_(platform), merger_(merger), joins_(merger.joins()) {
    graph_.nodes = platform.graph.nodes;
    for (const DescribedNode& node : graph_.nodes) names_.insert(node.name);
  }

  DescribedGraph build() {
    for (std::size_t node = 0; node < platform_.graph.nodes.size(); ++node) places_[node] = node;
    for (const std::size_t host : hosts_to_cross())
      places_[host] = add_switch(platform_.graph.nodes[host].name + ".switch");
    for (std::size_t link = 0; link < platform_.links.size(); ++link) {
      if (!merger_.is_plain(link)) continue;
      const PlatformLink& read = platform_.links[link];
      add(node_at(merger_.head(link)), node_at(merger_.head(link) + 1), read, read.direction, read.latency_s);
    }
    for (const auto& [from, to] : joins_) add_join(from, to);
    for (DescribedLink link : platform_.graph.links) {
      link.from = places_[link.from];
      link.to = places_[link.to];
      graph_.links.push_back(std::move(link));
    }
    join_hosts();
    return std::move(graph_);
  }

 private:
  // A machine carries no traffic of others, so routes that pass through a host of the platform pass through a switch
  // beside it.
  std::set<std::size_t> hosts_to_cross() {
    std::set<std::size_t> hosts;
    for (const std::size_t node : merger_.crossed()) {
      if (is_host(node)) hosts.insert(node);
    }
    std::map<std::size_t, std::set<std::size_t>> links;
    for (const PlatformRoute& route : platform_.routes) {
      if (route.is_whole || platform_.has_kinds || route.hops.empty()) continue;
      links[route.from].insert(route.hops.front().link);
      links[route.to].insert(route.hops.back().link);
    }
    for (const auto& [node, ends] : links) {
      if (is_host(node) && ends.size() > 1) hosts.insert(node);
    }
    return hosts;
  }

  bool is_host(std::size_t node) const { return platform_.graph.nodes[node].kind == "host"; }

  std::size_t add_switch(std::string name) {
    while (!names_.insert(name).second) name += "_";
    DescribedNode node;
    node.name = std::move(name);
    node.kind = "router";
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  std::size_t node_at(std::size_t point) {
    const auto [known, is_new] = places_.emplace(merger_.root(point), 0);
    if (is_new) known->second = add_switch(fmt::format("switch{}", ++switches_));
    return known->second;
  }

  void add(std::size_t from, std::size_t to, const PlatformLink& like, Direction direction, double latency_s) {
    DescribedLink link;
    link.from = from;
    link.to = to;
    link.kind = !like.kind.empty() ? like.kind : platform_.has_kinds ? "" : "network";
    link.bytes_per_s = like.bytes_per_s;
    link.latency_s = latency_s;
    link.direction = direction;
    link.place = like.place;
    graph_.links.push_back(std::move(link));
  }

  // Flows on a join are also on a medium at its end, whose bandwidth limits them. A FATPIPE becomes a link of its own
  // for each place where flows enter it; all flows leave it at the same place.
  void add_join(const RoutePlace& from, const RoutePlace& to) {
    PlatformLink like = platform_.links[to.is_medium ? to.index : from.index];
    const bool is_pipe = to.is_medium && like.is_fatpipe;
    const std::size_t source = from.is_medium ? medium(from).second : node_at(from.index);
    const std::size_t target = !to.is_medium ? node_at(to.index) : is_pipe ? medium(to).second : medium(to).first;
    if (!to.is_medium && like.is_fatpipe) like.bytes_per_s *= entries(from);
    add(source, target, like, Direction::one_way, is_pipe ? like.latency_s : 0);
  }

  double entries(const RoutePlace& medium) const {
    return static_cast<double>(
        std::count_if(joins_.begin(), joins_.end(), [&](const auto& join) { return join.second == medium; }));
  }

  // Returns the switches before and after a medium; for a FATPIPE only the one after it.
  std::pair<std::size_t, std::size_t> medium(const RoutePlace& place) {
    const auto known = media_.find(place);
    if (known != media_.end()) return known->second;
    const PlatformLink& link = platform_.links[place.index];
    const std::string name = link.id + (place.is_down ? ".down" : "");
    const std::size_t in = link.is_fatpipe ? 0 : add_switch(name + ".in");
    const std::size_t out = add_switch(name + ".out");
    if (!link.is_fatpipe) add(in, out, link, Direction::one_way, link.latency_s);
    return media_[place] = {in, out};
  }

  // The rate of all links of the switch together.
  void join_hosts() {
    std::map<std::size_t, double> rates;
    for (const DescribedLink& link : graph_.links) {
      rates[link.from] += link.bytes_per_s.value_or(0);
      rates[link.to] += link.bytes_per_s.value_or(0);
    }
    for (std::size_t host = 0; host < platform_.graph.nodes.size(); ++host) {
      if (places_[host] == host) continue;
      PlatformLink join;
      join.bytes_per_s = rates[places_[host]];
      join.place = platform_.graph.nodes[host].place;
      add(host, places_[host], join, Direction::duplex, 0);
    }
  }

  const Platform& platform_;
  RouteMerger& merger_;
  std::set<std::pair<RoutePlace, RoutePlace>> joins_;
  DescribedGraph graph_{};
  std::set<std::string> names_{};
  std::map<std::size_t, std::size_t> places_{};  // from the root of points to nodes
  std::map<RoutePlace, std::pair<std::size_t, std::size_t>> media_{};
  int switches_ = 0;
};

std::vector<int> uses_of_links(const Platform& platform) {
  std::vector<int> uses(platform.links.size());
  for (const PlatformRoute& route : platform.routes) {
    for (const PlatformHop& hop : route.hops) ++uses[hop.link];
  }
  return uses;
}

struct Way {
  double latency_s = 0, bytes_per_s = std::numeric_limits<double>::infinity();
};

Way stated_way(const Platform& platform, const PlatformRoute& route) {
  Way way;
  for (const PlatformHop& hop : route.hops) {
    way.latency_s += platform.links[hop.link].latency_s;
    way.bytes_per_s = std::min(way.bytes_per_s, platform.links[hop.link].bytes_per_s);
  }
  return way;
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(a, b);
}

std::string way_text(const Way& way) {
  return fmt::format("{:.4g} us at {:.4g} GB/s", way.latency_s * 1e6, way.bytes_per_s / 1e9);
}

// Returns how the route differs from the stated one; empty if it does not.
std::string difference_of(Router& router, NodeIndex from, NodeIndex to, const Way& stated) {
  try {
    const auto route = router.route(from, to);
    const Way way{route->latency_s, route->bandwidth_bytes_per_s};
    if (is_near(way.latency_s, stated.latency_s) && is_near(way.bytes_per_s, stated.bytes_per_s)) return "";
    return "the shortest way over the links of all routes takes " + way_text(way);
  } catch (const Error&) {
    return "no way over the links of all routes joins its ends";
  }
}

}  // namespace

DescribedGraph join_routes(const Platform& platform, bool all_media) {
  const std::vector<int> uses = uses_of_links(platform);
  std::vector<bool> media(platform.links.size(), all_media);
  for (int round = 0;; ++round) {
    RouteMerger merger(platform, media);
    if (merger.without_ends().empty()) return RouteGraph(platform, merger).build();
    int most = 0;  // those on most routes first: once they are media, the others may have two ends
    for (const std::size_t link : merger.without_ends()) most = std::max(most, uses[link]);
    for (const std::size_t link : merger.without_ends()) media[link] = media[link] || uses[link] == most;
    if (round == kMostRounds) media.assign(media.size(), true);
  }
}

std::optional<RouteDifference> find_difference(const Platform& platform, const Topology& topology) {
  const bool is_mirrored = std::all_of(platform.routes.begin(), platform.routes.end(),
                                       [](const PlatformRoute& route) { return route.is_symmetrical; });
  const auto index_of = [&](std::size_t node) { return topology.find(platform.graph.nodes[node].name).value(); };
  Router router(topology, 1);
  for (const PlatformRoute& route : platform.routes) {
    if (!route.is_whole) continue;
    const Way stated = stated_way(platform, route);
    const NodeIndex from = index_of(route.from), to = index_of(route.to);
    std::string found = difference_of(router, from, to, stated);
    if (found.empty() && route.is_symmetrical && !is_mirrored) found = difference_of(router, to, from, stated);
    if (found.empty()) continue;
    return RouteDifference{
        route.number,
        fmt::format("takes {} by its links, but {}; list links in the order in which they are crossed, or write the "
                    "platform as a graph, in GraphML or with routing=\"Floyd\"",
                    way_text(stated), found)};
  }
  return std::nullopt;
}

}  // namespace tandem
