// The NVLink and xGMI links of an NCCL or RCCL file. Each GPU lists its own ends. For readers/nccl_xml.cc.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "topologies/readers/nccl/nccl_document.h"
#include "topologies/readers/nccl/nccl_graph.h"
#include "topologies/readers/nccl/nccl_rates.h"

namespace tandem::nccl {

class GpuLinks {
 public:
  GpuLinks(Graph& graph, Document& document) : graph_(graph), document_(document) {}

  // Keeps one end: an `nvlink` or `xgmi` element of a GPU. `rate_each` is that of one link.
  void read(const pugi::xml_node& element, std::size_t gpu, double rate_each);

  // Finds the other ends, once all parts have been read. Connects links to processors immediately, and leaves the
  // others to add_connections().
  void connect(bool is_one_host);

  void add_connections();

  bool empty() const { return ends_.empty(); }
  // Returns whether all ends name the GPU itself, as in files of clouds that hide which GPUs are joined.
  bool names_only_itself() const { return !ends_.empty() && rates_.empty() && selves_ > 0; }

 private:
  struct End {
    std::size_t gpu;
    pugi::xml_node element;
    std::optional<std::uint64_t> target;
    PciClass target_class;
    double rate;
  };
  void connect(const End& end, bool is_one_host);

  Graph& graph_;
  Document& document_;
  std::vector<End> ends_;
  std::map<std::pair<std::size_t, std::size_t>, double> rates_;  // from one end to the other; the other lists its own
  std::map<int, std::size_t> nvswitches_;                        // by host, or kNoWorker for one that all hosts share
  int selves_ = 0;
};

}  // namespace tandem::nccl
