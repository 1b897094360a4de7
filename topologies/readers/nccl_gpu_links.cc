#include "topologies/readers/nccl_gpu_links.h"

namespace tandem::nccl {

void GpuLinks::read(const pugi::xml_node& element, std::size_t gpu, double rate_each) {
  const std::string target = document_.required_text(element, "target");
  const std::int64_t count = document_.required_number(element, "count", 1);
  const PciClass kind = pci_class(document_.required_text(element, "tclass"));
  if (count <= 0) return document_.problem(element, "must be greater than 0", "count");
  ends_.push_back({gpu, element, bus_number(target), kind, rate_each * static_cast<double>(count)});
}

void GpuLinks::connect(bool is_one_host) {
  for (const End& end : ends_) connect(end, is_one_host);
}

void GpuLinks::connect(const End& end, bool is_one_host) {
  const Part& gpu = graph_.parts[end.gpu];
  if (end.target_class == PciClass::nvlink_bridge) return graph_.connect(end.gpu, gpu.cpu, LinkKind::nvlink, end.rate);
  if (end.target_class != PciClass::gpu) {
    if (!nvswitch_) {
      Part part;
      part.kind = NodeKind::nvswitch;
      part.host = is_one_host ? 0 : kNoWorker;  // one NVLink domain over several hosts
      nvswitch_ = graph_.add(std::move(part));
    }
    rates_[{end.gpu, *nvswitch_}] += end.rate;
    return;
  }
  const auto peer = graph_.find(NodeKind::gpu, end.target, gpu.host);
  if (!peer) return;  // a GPU that is not in the file
  if (*peer == end.gpu) return document_.problem(end.element, "a link from a GPU to itself", "target");
  rates_[{end.gpu, *peer}] += end.rate;
}

void GpuLinks::check() {
  for (const auto& [ends, rate] : rates_) {
    const auto back = rates_.find({ends.second, ends.first});
    if (back == rates_.end() || ends.first > ends.second || back->second == rate) continue;
    document_.problem(graph_.parts[ends.first].element,
                      "lists another number of NVLinks to a GPU than that GPU lists back");
  }
}

void GpuLinks::add_connections() {
  for (const auto& [ends, rate] : rates_) {
    const bool is_listed_back = rates_.contains({ends.second, ends.first});
    if (!is_listed_back || ends.first < ends.second) graph_.connect(ends.first, ends.second, LinkKind::nvlink, rate);
  }
}

}  // namespace tandem::nccl
