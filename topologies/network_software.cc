#include "topologies/network_software.h"

#include <map>
#include <utility>

namespace tandem {
namespace {

struct Software {
  Figure hop_latency_s{}, advertised_latency_s{};
};

Figure figure(double value_us, double low_us, double high_us, Provenance provenance, std::string source) {
  return {.value = value_us / 1e6,
          .provenance = provenance,
          .source = std::move(source),
          .low = low_us / 1e6,
          .high = high_us / 1e6};
}

Figure stated(double value_us, std::string source) {
  return {.value = value_us / 1e6, .provenance = Provenance::vendor, .source = std::move(source)};
}

// Tables are those of tests/validation/collectives. A table's hop latency is the one with which the model is nearest to
// its calls below 32 KiB; ranges are from the least to the most of all tables, and of sizes up to 1 MiB.
const std::map<std::string, Software, std::less<>>& software_of_transports() {
  using enum Provenance;
  static const std::map<std::string, Software, std::less<>> kSoftware{
      {"infiniband",
       {figure(0, 0, 5, measured, "0 to 5 us: dgx1_x16_2node_4xedr, dgxa100_x16_2node_hdr_ring, h100x16_2node_*"),
        stated(0, "NVIDIA/nccl 2.30.7 src/transport/net_ib states none")}},
      {"roce",
       {figure(0, 0, 40, assumed, "0 to 3 us on a100_40_x16_2node_oci_*, 33 us on h200_x16_2node_gcp_a3ultra"),
        stated(0, "NVIDIA/nccl 2.30.7 src/transport/net_ib states none")}},
      {"efa",
       {figure(30, 20, 75, assumed, "30 us on p5_x16_2node_efa, 70 to 80 us on p4d_x16_2node_efa_*"),
        stated(75, "of most instances, aws/aws-ofi-nccl src/platform-aws.c")}},
      {"tcpx",
       {figure(850, 700, 1000, measured, "h100x16_2node_gcp_a3high, h100_x16_2node_gcp_a3high_toolkit"),
        figure(0, 0, 0, assumed, "not known")}},
      {"tcpxo",
       {figure(55, 45, 100, measured, "h100_x16_2node_gcp_a3mega_all_reduce, h100x16_2node_gcp_a3mega_all_gather"),
        figure(0, 0, 0, assumed, "not known")}},
      {"slingshot",
       {figure(10, 0, 40, assumed, "no measurement; between InfiniBand and other libfabric plug-ins"),
        figure(0, 0, 0, assumed, "not known")}},
      {"socket",
       {figure(20, 15, 45, measured,
               "17.8 and 18.8 us over Slingshot, simllm crossnode_collective_envelope_v1; 42 us over ENA, awseks_x2"),
        stated(0, "NVIDIA/nccl 2.30.7 src/transport/net_socket.cc states none")}},
  };
  return kSoftware;
}

bool lacks_figure(const Figure& figure) {
  return figure.value == 0 && figure.source.empty();
}

}  // namespace

void set_transport(const std::string& transport, LinkModel& model) {
  const bool is_other = model.transport != transport;
  model.transport = transport;
  const auto found = software_of_transports().find(transport);
  const Software usual = found == software_of_transports().end() ? Software{} : found->second;
  if (is_other || lacks_figure(model.hop_latency_s)) model.hop_latency_s = usual.hop_latency_s;
  if (is_other || lacks_figure(model.advertised_latency_s)) model.advertised_latency_s = usual.advertised_latency_s;
}

}  // namespace tandem
