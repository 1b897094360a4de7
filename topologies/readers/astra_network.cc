#include "topologies/readers/astra_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/described_graph.h"

namespace tandem {
namespace {

constexpr double kAstraGigabyte = 1024.0 * 1024 * 1024;
constexpr double kAstraNanosecond = 1e-9;
constexpr int kMostNpus = 1 << 16;
constexpr int kMostFullyConnected = 1024;

enum class Shape : std::uint8_t { ring, fully_connected, switched };

struct AstraDimension {
  Shape shape = Shape::ring;
  int npus = 1;
  double bytes_per_s = 0, latency_s = 0;
};

// Returns the values of a list, or a single value, as old files have for one dimension.
std::vector<YamlReader> values_of(const YamlReader& reader) {
  return reader.is_list() ? reader.list() : std::vector<YamlReader>{reader};
}

// Reads a number in ASTRA-sim's unit, of which one is `unit` in ours.
double figure(const YamlReader& value, double unit, Dimension dimension, bool zero_allowed) {
  const double read = value.number({.otherwise = 1}) * unit;
  const std::string written = value.is_scalar() ? shortened(value.node()->text) : "";
  if (std::string problem = quantity_problem(read, dimension, written, zero_allowed); !problem.empty()) {
    value.error(std::move(problem));
  }
  return read;
}

std::vector<AstraDimension> read_dimensions(const YamlReader& root) {
  static const YamlReader::Words<Shape> kShapes{
      {"Ring", Shape::ring}, {"FullyConnected", Shape::fully_connected}, {"Switch", Shape::switched}};
  const YamlReader shapes = root.required("topology"), counts = root.required("npus_count");
  const YamlReader rates = root.required("bandwidth"), latencies = root.required("latency");
  std::vector<AstraDimension> dimensions;
  for (const YamlReader& shape : values_of(shapes)) {
    dimensions.push_back({shape.one_of(kShapes, Shape::ring), 1, 0, 0});
  }
  const auto size = dimensions.size();
  for (const YamlReader* list : {&counts, &rates, &latencies}) {
    if (values_of(*list).size() == size) continue;
    list->error(fmt::format("expected {} values, one for each dimension of topology", size));
    return {};
  }
  std::int64_t product = 1;
  for (std::size_t i = 0; i < size; ++i) {
    dimensions[i].npus = values_of(counts)[i].integer(1, kMostNpus, 1);
    dimensions[i].bytes_per_s = figure(values_of(rates)[i], kAstraGigabyte, Dimension::bytes_per_second, false);
    dimensions[i].latency_s = figure(values_of(latencies)[i], kAstraNanosecond, Dimension::seconds, true);
    product *= dimensions[i].npus;
    if (product > kMostNpus) {
      counts.error(fmt::format("more than {} NPUs", kMostNpus));
      return {};
    }
    if (dimensions[i].shape == Shape::fully_connected && dimensions[i].npus > kMostFullyConnected) {
      values_of(counts)[i].error(fmt::format("a complete graph of more than {} NPUs", kMostFullyConnected));
    }
  }
  return dimensions;
}

class AstraGraph {
 public:
  explicit AstraGraph(std::vector<AstraDimension> dimensions) : dimensions_(std::move(dimensions)) {
    for (const AstraDimension& dimension : dimensions_) count_ *= static_cast<std::size_t>(dimension.npus);
  }

  DescribedGraph build() {
    for (std::size_t npu = 0; npu < count_; ++npu) {
      add(fmt::format("w{}.gpu{}", machine_of(npu), npu % inside()), "gpu", machine_of(npu));
    }
    std::size_t stride = 1;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      join(d, stride);
      stride *= static_cast<std::size_t>(dimensions_[d].npus);
    }
    return std::move(graph_);
  }

 private:
  std::size_t inside() const { return static_cast<std::size_t>(dimensions_.front().npus); }
  int machine_of(std::size_t npu) const { return static_cast<int>(npu / inside()); }

  std::size_t add(const std::string& name, const std::string& kind, int worker) {
    DescribedNode node;
    node.name = name;
    node.kind = kind;
    node.worker = worker;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  void link(std::size_t from, std::size_t to, const std::string& kind, const AstraDimension& dimension) {
    DescribedLink made;
    made.from = from;
    made.to = to;
    made.kind = kind;
    made.bytes_per_s = dimension.bytes_per_s;
    made.latency_s = dimension.latency_s;
    graph_.links.push_back(std::move(made));
  }

  // Returns the node from which an NPU sends into a dimension: inside a machine the NPU itself, otherwise its NIC for a
  // switch, or a router behind that NIC.
  std::size_t port(std::size_t npu, std::size_t d) {
    if (d == 0) return npu;
    const AstraDimension& dimension = dimensions_[d];
    const auto nic = add(fmt::format("w{}.nic{}_{}", machine_of(npu), npu % inside(), d), "nic", machine_of(npu));
    graph_.nodes[nic].port_bytes_per_s = dimension.bytes_per_s * (dimension.shape == Shape::switched ? 1 : 2);
    AstraDimension free = dimension;
    free.bytes_per_s = *graph_.nodes[nic].port_bytes_per_s * std::max(1, dimension.npus);
    free.latency_s = 0;
    link(npu, nic, "pcie", free);
    if (dimension.shape == Shape::switched) return nic;
    const auto router = add(fmt::format("fabric.router{}_{}", npu, d), "router", kNoWorker);
    link(nic, router, "network", free);
    return router;
  }

  void join(std::size_t d, std::size_t stride) {
    const AstraDimension& dimension = dimensions_[d];
    const auto size = static_cast<std::size_t>(dimension.npus);
    const std::string kind = d == 0 ? "nvlink" : "network";
    for (std::size_t npu = 0; npu < count_; ++npu) {
      if (npu / stride % size != 0 || size == 1) continue;  // only the first of each group goes on
      std::vector<std::size_t> ports;
      for (std::size_t i = 0; i < size; ++i) ports.push_back(port(npu + i * stride, d));
      if (dimension.shape == Shape::switched) {
        const auto middle = d == 0 ? add(fmt::format("w{}.nvswitch0", machine_of(npu)), "nvswitch", machine_of(npu))
                                   : add(fmt::format("fabric.switch{}_{}", npu, d), "router", kNoWorker);
        for (const std::size_t end : ports) link(end, middle, kind, dimension);
      } else if (dimension.shape == Shape::fully_connected) {
        for (std::size_t i = 0; i < size; ++i) {
          for (std::size_t j = 0; j < i; ++j) link(ports[j], ports[i], kind, dimension);
        }
      } else {
        for (std::size_t i = 0; i + 1 < size; ++i) link(ports[i], ports[i + 1], kind, dimension);
        if (size > 2) link(ports.back(), ports.front(), kind, dimension);
      }
    }
  }

  std::vector<AstraDimension> dimensions_;
  std::size_t count_ = 1;
  DescribedGraph graph_{};
};

}  // namespace

bool is_astra_network(std::string_view text) {
  bool has_topology = false, has_count = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
    begin += line.size() + 1;
    has_topology = has_topology || line.starts_with("topology:");
    has_count = has_count || line.starts_with("npus_count:");
  }
  return has_topology && has_count;
}

ImportedTopology import_astra_network(std::string_view text, const std::string& file, const ImportOptions& options) {
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  std::vector<AstraDimension> dimensions = read_dimensions(root);
  root.finish();
  if (dimensions.empty() && problems.empty()) root.error("needs at least one dimension");
  problems.throw_if_any();
  ImportedTopology imported =
      build_described(AstraGraph(dimensions).build(), file, options, std::filesystem::path(file).stem().string());
  imported.notes.insert(
      imported.notes.begin(),
      file + ": bandwidth is in GiB/s, as ASTRA-sim multiplies it by 2^30; the first dimension is a machine's own");
  return imported;
}

}  // namespace tandem
