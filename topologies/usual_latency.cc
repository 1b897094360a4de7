#include "topologies/usual_latency.h"

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr double kToNvswitch = 0.3e-6;  // half of NCCL's LL step over NVLink, NVIDIA/nccl 2.30.7 src/graph/tuning.cc
constexpr double kBetweenGpus = 0.6e-6;
constexpr double kC2c = 0.3e-6;
constexpr double kPcie = 0.2e-6;
constexpr double kCpuInterconnect = 0.2e-6;
constexpr double kInfiniband = 0.6e-6;  // HDR, stas00/ml-engineering network/README.md commit 744d01e1
constexpr double kOtherNetwork = 1e-6;  // InfiniBand and a slower switch

}  // namespace

double usual_latency_s(LinkKind kind, NodeKind from, NodeKind to, std::string_view transport) {
  switch (kind) {
    case LinkKind::nvlink:
      return from == NodeKind::gpu && to == NodeKind::gpu ? kBetweenGpus : kToNvswitch;
    case LinkKind::c2c:
      return kC2c;
    case LinkKind::pcie:
      return kPcie;
    case LinkKind::cpu_interconnect:
      return kCpuInterconnect;
    case LinkKind::network:
      return transport.empty() || transport == "infiniband" ? kInfiniband : kOtherNetwork;
  }
  TANDEM_UNREACHABLE("a LinkKind outside its enumerators");
}

double usual_latency_s(const Topology& topology, LinkIndex index) {
  const Link link = topology.link(index);
  return usual_latency_s(link.model->kind, topology.kind(link.from), topology.kind(link.to), link.model->transport);
}

}  // namespace tandem
