// Reads an NCCL or RCCL file into parts and connections, and adds what the file leaves open. For readers/nccl_xml.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topologies/readers/import.h"
#include "topologies/readers/nccl/nccl_document.h"
#include "topologies/readers/nccl/nccl_gpu_links.h"
#include "topologies/readers/nccl/nccl_graph.h"
#include "topologies/readers/nccl/nccl_rates.h"
#include "topologies/readers/pci_ids.h"

namespace tandem::nccl {

class Importer {
 public:
  Importer(std::string_view text, const std::string& file, ImportOptions options)
      : document_(text, file, diagnostics_), options_(std::move(options)) {}

  ImportedTopology import();

 private:
  using Element = pugi::xml_node;

  struct NumaNode {
    std::size_t part = 0;
    double rate = 0;  // to other NUMA nodes; 0: not stated
    bool has_cores = false;
  };
  // A pci element that nothing in the file identifies.
  struct Unclassified {
    Element element;
    std::optional<std::uint64_t> bus;
    std::size_t parent, cpu;
    double rate;
  };

  // nccl_xml.cc: the system, its processors, and what joins the parts.
  void read_system(const Element& root);
  void read_cpu(const Element& element);
  double numa_rate_of(const Element& element);
  bool repeats_gpus(const Element& root) const;
  int read_host(const Element& cpu);
  int host_number(std::uint64_t hash);
  void connect_cpus();
  void connect_pci_link(std::size_t from, std::optional<std::uint64_t> target);
  void check_gpus();
  void order_by_bus(NodeKind kind);

  // nccl_devices.cc: what hangs below a processor.
  enum class Device : std::uint8_t { bridge, gpu, nic, skipped, unknown };
  Device kind_of(const Element& pci);
  void read_pci(const Element& element, std::size_t parent, std::size_t cpu, int level);
  std::optional<std::uint64_t> read_bus(const Element& element);
  double read_rate(const Element& element);
  void read_bridge(const Element& element, std::optional<std::uint64_t> bus, std::size_t parent, std::size_t cpu,
                   double rate, int level);
  void widen_virtual_bridge(const Element& element, std::size_t uplink);
  void read_gpus(const Element& pci, std::optional<std::uint64_t> bus, std::size_t parent, std::size_t cpu,
                 double rate);
  void read_gpu(const Element& element, const Element& pci, std::optional<std::uint64_t> bus, std::size_t parent,
                std::size_t cpu, double rate);
  void read_links(const Element& gpu, std::size_t index, const std::string& architecture);
  std::string architecture_of(const Element& gpu);
  void add_partial(NodeKind kind, const Element& pci, std::optional<std::uint64_t> bus, std::size_t parent,
                   std::size_t cpu, double rate);
  void read_nic(const Element& element, std::size_t parent, std::size_t cpu, double rate);
  std::size_t add_card(const Element& element, std::size_t parent, std::size_t cpu, double rate);
  std::shared_ptr<const LinkModel> port_of(const Element& net);
  std::shared_ptr<const DeviceModel> product_model(const PciGpu& product);
  std::shared_ptr<const DeviceModel> architecture_model(const std::string& architecture);

  // nccl_completion.cc: what the file leaves open.
  void complete();
  bool is_incomplete() const;
  void choose_machine();
  void note_other_gpus();
  static bool is_like(const Part& gpu, const DeviceModel& model);
  bool fits(const Topology& machine) const;
  std::string advice() const;
  void classify();
  void refuse_unclassified();
  void complete_gpus();
  void complete_links();
  void complete_links_of(int host, const std::vector<std::size_t>& gpus);
  void complete_ports();
  void complete_rates();
  std::shared_ptr<const LinkModel> assumed(const std::shared_ptr<const LinkModel>& model);

  Diagnostics diagnostics_;
  Document document_;
  ImportOptions options_;
  Graph graph_{};
  GpuLinks gpu_links_{graph_, document_};
  std::vector<NumaNode> numa_nodes_{};
  std::map<std::pair<int, std::uint64_t>, int> hosts_{};  // by system and hash
  int systems_ = 0;
  bool repeats_ = false;              // several hosts in one system; a numaid that repeats begins the next
  std::set<std::string> numa_ids_{};  // of the host that is read
  std::uint64_t repeated_hosts_ = 0;
  std::vector<std::pair<std::size_t, std::optional<std::uint64_t>>> pci_links_{};
  std::set<std::pair<std::size_t, std::size_t>> joined_{};
  std::vector<Unclassified> unclassified_{};
  std::vector<Element> unused_gpus_{};
  std::map<std::string, std::shared_ptr<const DeviceModel>> models_{};  // by architecture or product
  std::map<std::pair<std::int64_t, double>, std::shared_ptr<const LinkModel>> ports_{};
  bool has_gpu_elements_ = false, has_nets_ = false;
  std::optional<Topology> machine_{};  // the one that completes the file
  std::string machine_name_{};
  std::map<const LinkModel*, std::shared_ptr<const LinkModel>> assumed_{};
};

}  // namespace tandem::nccl
