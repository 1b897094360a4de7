// The parts of an NCCL file in the order of the file, before they are numbered and named. For readers/nccl_xml.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "topologies/topology.h"

namespace tandem::nccl {

struct Part {
  NodeKind kind = NodeKind::pcie_switch;
  int host = 0;            // kNoWorker: shared by several
  std::int64_t order = 0;  // among the parts of one kind: dev of GPUs and NICs, else as in the file
  std::optional<std::uint64_t> bus{};
  std::size_t cpu = 0;  // the part of the CPU it hangs under
  std::shared_ptr<const DeviceModel> device{};
  std::shared_ptr<const LinkModel> port{};
  pugi::xml_node element{};
  // A GPU or NIC for which the file gives only the place; the rest comes from elsewhere.
  bool is_partial = false;
  unsigned vendor = 0, product = 0;  // PCI ids; 0: not stated
};

struct Connection {
  std::size_t from = 0;  // indices of parts
  std::size_t to = 0;
  LinkKind kind = LinkKind::pcie;
  double rate = 0;                           // bytes/s; 0: not stated
  std::string source{};                      // of a rate that is assumed; empty: the file's
  std::shared_ptr<const LinkModel> model{};  // instead of a rate
};

struct Graph {
  std::vector<Part> parts{};
  std::vector<Connection> connections{};

  std::size_t add(Part part);
  void connect(std::size_t from, std::size_t to, LinkKind kind, double rate);
  // Returns the parts of a kind on a host, in their order.
  std::vector<std::size_t> of(NodeKind kind, int host) const;
  // Returns the part of a kind with this bus id, preferably on this host.
  std::optional<std::size_t> find(NodeKind kind, std::optional<std::uint64_t> bus, int host);

 private:
  std::multimap<std::pair<NodeKind, std::uint64_t>, std::size_t> by_bus_{};
  std::size_t indexed_ = 0;  // parts that by_bus_ has
};

// Builds the topology. Nodes are sorted by host, kind and order, and named accordingly: "w0.gpu3".
Topology build_topology(const Graph& graph, const std::string& file);

}  // namespace tandem::nccl
