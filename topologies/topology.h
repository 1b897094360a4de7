// The machine or cluster a job runs on: devices, switches, NICs and the links between them, and every figure that a
// prediction rests on with where it came from. topologies/graph.h makes a Boost.Graph of it.
//
// Units: bandwidth in bytes/s for one direction, latency in seconds, rates in flop/s, sizes in bytes.
// Threads: build a Topology from one thread; a built one is immutable and may be shared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/dtype.h"

namespace tandem {

// Where a figure comes from: `tandem calibrate` or another measurement, a datasheet, or nobody's knowledge.
enum class Provenance : std::uint8_t { measured, vendor, assumed };
std::string_view name_of(Provenance provenance);

// One figure and the reason to believe it.
struct Figure {
  double value = 0;
  Provenance provenance = Provenance::assumed;
  std::string source{};        // citation, or the command that measured it
  std::string date{};          // ISO date of a measurement, else empty
  double relative_spread = 0;  // of a measurement: median absolute deviation / median
};

enum class NodeKind : std::uint8_t { cpu, gpu, pcie_switch, nvswitch, nic, network_switch };
enum class LinkKind : std::uint8_t { nvlink, pcie, c2c, cpu_interconnect, network };
std::string_view name_of(NodeKind kind);
std::string_view name_of(LinkKind kind);

// A rate at a size; between samples rates are interpolated in log(size).
struct RateSample {
  double bytes = 0;
  double bytes_per_s = 0;
};
// A measured C[m,n] += A[m,k] B[k,n].
struct GemmSample {
  double m = 0, n = 0, k = 0;
  double flops_per_s = 0;
};
// What one device reaches while `concurrency` logical devices of its node work at once. Where there are more of them
// than the node has cores, a rate and an overhead are those of the node: the devices on it share them.
struct DeviceRates {
  int concurrency = 1;
  DType dtype = DType::f32;
  double op_overhead_s = 0;      // 0: the device's
  double launch_overhead_s = 0;  // of each of the tasks that issue at once; 0: the device's
  std::vector<GemmSample> gemm;
  std::vector<RateSample> memory;  // element-wise work; bytes read plus bytes written
  std::vector<RateSample> copy;    // copies inside the node's memory; bytes copied, counted once
};

// A kind of device. For a CPU every rate is that of one core, since a logical CPU device is one thread.
struct DeviceModel {
  std::string name;      // "NVIDIA H100 SXM5"
  int cores = 1;         // CPU: how many logical devices work at full rate at once. GPU: 1
  int copy_engines = 0;  // transfers that need no processor; 0: copying occupies the device, as on a CPU
  std::map<DType, Figure> peak_flops_per_s;
  Figure memory_bandwidth_bytes_per_s;
  Figure memory_bytes;
  Figure launch_overhead_s;  // host time to enqueue one op
  Figure op_overhead_s;      // device time every op costs before its work
  Figure synchronize_s;      // host time between the end of work and the waiting caller's return
  Figure gemm_efficiency{.value = 1, .source = "peak rate, no calibration"};  // of peak, where `rates` is empty
  std::vector<DeviceRates> rates;  // measured curves; empty: roofline of the figures above
  std::string id{};                // what its file calls it, e.g. "gpu"; overrides refer to it
};

// A kind of link.
struct LinkModel {
  LinkKind kind = LinkKind::network;
  Figure bandwidth_bytes_per_s;
  Figure latency_s;
  std::string id{};  // what its file calls it, e.g. "nvlink"; overrides refer to it
};

// A measured collective between `devices` logical devices of one worker: what the vendor's library reaches.
struct CollectiveSample {
  std::string operation;  // "all_reduce", as in engine/communicator.h
  int devices = 0;
  double bytes = 0;
  double time_s = 0;
  double relative_spread = 0;
};

using NodeIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
inline constexpr int kNoWorker = -1;

struct Node {
  std::string name;  // unique, e.g. "w0.gpu3"
  NodeKind kind = NodeKind::network_switch;
  int worker = kNoWorker;                       // which machine it sits in; kNoWorker for the fabric
  std::shared_ptr<const DeviceModel> device{};  // cpu and gpu nodes
  std::shared_ptr<const LinkModel> port{};      // nic nodes: what its network port reaches, where that is known
};

// duplex: full bandwidth each way at once. half_duplex: both ways share it. one_way: first to second only.
enum class Direction : std::uint8_t { duplex, half_duplex, one_way };

struct Link {
  NodeIndex from = 0;
  NodeIndex to = 0;
  Direction direction = Direction::duplex;
  std::shared_ptr<const LinkModel> model;
};

class Topology {
 public:
  explicit Topology(std::string name) : name_(std::move(name)) {}

  // Building. Names must be unique (TANDEM_CHECK); readers report duplicates before they get here.
  NodeIndex add_node(Node node);
  LinkIndex add_link(NodeIndex from, NodeIndex to, std::shared_ptr<const LinkModel> model,
                     Direction direction = Direction::duplex);
  void add_collective(CollectiveSample sample) { collectives_.push_back(std::move(sample)); }
  void set_measured_with(std::map<std::string, std::string> facts) { measured_with_ = std::move(facts); }

  const std::string& name() const { return name_; }
  std::size_t node_count() const { return nodes_.size(); }
  std::size_t link_count() const { return links_.size(); }
  const Node& node(NodeIndex index) const { return nodes_[index]; }
  const Link& link(LinkIndex index) const { return links_[index]; }
  std::optional<NodeIndex> find(std::string_view name) const;

  // Workers are numbered from 0 without gaps. Nodes come in the order they were added.
  int worker_count() const { return static_cast<int>(workers_.size()); }
  std::vector<NodeIndex> nodes_of(int worker, NodeKind kind) const;

  const std::vector<CollectiveSample>& collectives() const { return collectives_; }

  // What the measured figures hold for, by name: GPU, clocks, driver, versions, date. For people: nothing reads it.
  const std::map<std::string, std::string>& measured_with() const { return measured_with_; }

  // The weakest provenance of any figure in use: assumed < vendor < measured.
  Provenance provenance() const;

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<NodeIndex>> workers_;
  std::map<std::string, NodeIndex, std::less<>> by_name_;
  std::vector<CollectiveSample> collectives_;
  std::map<std::string, std::string> measured_with_;
};

}  // namespace tandem
