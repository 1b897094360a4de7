#include "topologies/readers/nccl/nccl_graph.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>

#include "topologies/readers/nccl/nccl_rates.h"
#include "topologies/usual_latency.h"

namespace tandem::nccl {
namespace {

std::string short_name(NodeKind kind) {
  return kind == NodeKind::pcie_switch ? "pcie" : std::string(name_of(kind));
}

std::vector<std::size_t> in_order(const std::vector<Part>& parts) {
  std::vector<std::size_t> order(parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    const int host = parts[i].host == kNoWorker ? std::numeric_limits<int>::max() : parts[i].host;
    return std::tuple(host, parts[i].kind, parts[i].order);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

// Links of one kind and rate share a model.
class LinkModels {
 public:
  explicit LinkModels(const std::string& file) : file_(file) {}

  // `from` and `to`: what the connection joins.
  std::shared_ptr<const LinkModel> of(const Connection& connection, NodeKind from, NodeKind to) {
    if (connection.model) return connection.model;
    const double latency_s = connection.rate >= kLocal ? 0 : usual_latency_s(connection.kind, from, to);
    auto& known = models_[{connection.kind, connection.rate, latency_s, connection.source}];
    if (known) return known;
    auto model = std::make_shared<LinkModel>();
    model->kind = connection.kind;
    const int number = ++counts_[connection.kind];
    model->id = std::string(name_of(connection.kind)) + (number == 1 ? "" : "_" + std::to_string(number));
    const bool is_stated = connection.source.empty();
    model->bandwidth_bytes_per_s = {
        connection.rate, is_stated ? Provenance::vendor : Provenance::assumed,
        is_stated ? "NVIDIA/nccl 2.30.7 src/graph/topo.h, from " + file_ : connection.source, "", 0};
    model->latency_s = {latency_s, Provenance::assumed, "not in the file", "", 0};
    known = model;
    return model;
  }

 private:
  std::string file_;
  std::map<std::tuple<LinkKind, double, double, std::string>, std::shared_ptr<const LinkModel>> models_;
  std::map<LinkKind, int> counts_;
};

}  // namespace

std::size_t Graph::add(Part part) {
  parts.push_back(std::move(part));
  return parts.size() - 1;
}

void Graph::connect(std::size_t from, std::size_t to, LinkKind kind, double rate) {
  connections.push_back({from, to, kind, rate, "", nullptr});
}

std::vector<std::size_t> Graph::of(NodeKind kind, int host) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == kind && parts[i].host == host) found.push_back(i);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a].order < parts[b].order; });
  return found;
}

std::optional<std::size_t> Graph::find(NodeKind kind, std::optional<std::uint64_t> bus, int host) {
  for (; indexed_ < parts.size(); ++indexed_) {
    if (parts[indexed_].bus) by_bus_.emplace(std::pair(parts[indexed_].kind, *parts[indexed_].bus), indexed_);
  }
  std::optional<std::size_t> elsewhere;
  if (!bus) return elsewhere;
  const auto [begin, end] = by_bus_.equal_range({kind, *bus});
  for (auto at = begin; at != end; ++at) {
    if (parts[at->second].host == host) return at->second;
    elsewhere = at->second;
  }
  return elsewhere;
}

Topology build_topology(const Graph& graph, const std::string& file) {
  const std::vector<Part>& parts = graph.parts;
  Topology topology(std::filesystem::path(file).stem().string());
  std::vector<NodeIndex> nodes(parts.size());
  std::map<std::pair<int, NodeKind>, int> counts;
  for (const std::size_t index : in_order(parts)) {
    const Part& part = parts[index];
    const std::string prefix = part.host == kNoWorker ? "fabric." : "w" + std::to_string(part.host) + ".";
    Node node;
    node.name = prefix + short_name(part.kind) + std::to_string(counts[{part.host, part.kind}]++);
    node.kind = part.kind;
    node.worker = part.host;
    node.device = part.device;
    node.port = part.port;
    nodes[index] = topology.add_node(std::move(node));
  }
  LinkModels models(file);
  for (const Connection& connection : graph.connections) {
    topology.add_link(nodes[connection.from], nodes[connection.to],
                      models.of(connection, parts[connection.from].kind, parts[connection.to].kind));
  }
  return topology;
}

}  // namespace tandem::nccl
