#include "topologies/readers/nccl/nccl_gpu_links.h"

#include <algorithm>

namespace tandem::nccl {

void GpuLinks::read(const pugi::xml_node& element, std::size_t gpu, double rate_each) {
  document_.note_unknown(element, {"target", "count", "tclass"}, {});
  const auto target = bus_number(document_.required_text(element, "target"));
  const std::int64_t count = document_.count(element, "count", 1, 1, kMostLinks);
  if (!element.attribute("count")) document_.note(element, "no count of links, taken as one");
  const std::string_view stated = element.attribute("tclass").value();
  ends_.push_back({gpu, element, target, pci_class(stated), rate_each * static_cast<double>(count)});
  if (!stated.empty()) return;
  const bool is_xgmi = std::string_view(element.name()) == "xgmi";
  ends_.back().target_class = is_xgmi ? PciClass::gpu : PciClass::nvswitch;
  document_.note(element, "no tclass: the target is taken as a GPU if the file has it, else as an NVSwitch");
}

void GpuLinks::connect(bool is_one_host) {
  for (End& end : ends_) {
    if (!end.element.attribute("tclass") && graph_.find(NodeKind::gpu, end.target, graph_.parts[end.gpu].host)) {
      end.target_class = PciClass::gpu;  // a GPU that comes later in the file
    }
    connect(end, is_one_host);
  }
}

void GpuLinks::connect(const End& end, bool is_one_host) {
  const Part& gpu = graph_.parts[end.gpu];
  if (end.target_class == PciClass::nvlink_bridge) return graph_.connect(end.gpu, gpu.cpu, LinkKind::nvlink, end.rate);
  if (end.target_class != PciClass::gpu) {
    const int host = is_one_host ? gpu.host : kNoWorker;  // one NVLink domain over several hosts
    const auto known = nvswitches_.find(host);
    std::size_t nvswitch = known == nvswitches_.end() ? 0 : known->second;
    if (known == nvswitches_.end()) {
      Part part;
      part.kind = NodeKind::nvswitch;
      part.host = host;
      nvswitch = graph_.add(std::move(part));
      nvswitches_[host] = nvswitch;
    }
    rates_[{end.gpu, nvswitch}] += end.rate;
    return;
  }
  const auto peer = graph_.find(NodeKind::gpu, end.target, gpu.host);
  if (!peer) return document_.note(end.element, "a link to a GPU that is not in the file, left out");
  if (*peer == end.gpu) {
    ++selves_;
    return document_.note(end.element, "a link from a GPU to itself, left out");
  }
  rates_[{end.gpu, *peer}] += end.rate;
}

void GpuLinks::add_connections() {
  for (const auto& [ends, rate] : rates_) {
    const auto back = rates_.find({ends.second, ends.first});
    if (back != rates_.end() && ends.first > ends.second) continue;
    if (back != rates_.end() && back->second != rate) {
      document_.note(graph_.parts[ends.first].element,
                     "two GPUs list different numbers of links to each other, taken as the fewer");
    }
    const double both = back == rates_.end() ? rate : std::min(rate, back->second);
    graph_.connect(ends.first, ends.second, LinkKind::nvlink, both);
  }
}

}  // namespace tandem::nccl
