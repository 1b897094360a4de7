// The machine or cluster that a job runs on: devices, switches, NICs, the links between them, and the figures that
// predictions rest on, each with its provenance. topologies/graph.h makes a Boost.Graph of it.
//
// Units: bandwidth in bytes/s for one direction, latency in seconds, rates in flop/s, clocks in Hz, sizes in bytes.
// Threads: build a Topology from one thread; a built one is immutable and may be shared.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/dtype.h"
#include "topologies/price.h"

namespace tandem {

// Where a figure comes from: `tandem calibrate` or another measurement, a datasheet, or an assumption.
enum class Provenance : std::uint8_t { measured, vendor, assumed };
std::string_view name_of(Provenance provenance);

// One figure and the reason to believe it.
struct Figure {
  double value = 0;
  Provenance provenance = Provenance::assumed;
  std::string source{};        // citation, or the command that measured it
  std::string date{};          // ISO date of a measurement, else empty
  double relative_spread = 0;  // median absolute deviation / median of a measurement
  // What it may be instead, if `value` is one of several that are known; both 0: not stated.
  double low = 0, high = 0;

  bool has_range() const { return high > low; }
};

enum class NodeKind : std::uint8_t { cpu, gpu, pcie_switch, nvswitch, nic, network_switch };
enum class LinkKind : std::uint8_t { nvlink, pcie, c2c, cpu_interconnect, network };
std::string_view name_of(NodeKind kind);
std::string_view name_of(LinkKind kind);

// A rate at a size. Between samples, rates are interpolated in log(size).
struct RateSample {
  double bytes = 0;
  double bytes_per_s = 0;
};
// The rate of a measured C[m,n] += A[m,k] B[k,n].
struct GemmSample {
  double m = 0, n = 0, k = 0;
  double flops_per_s = 0;
};
// The rates that a device reaches while `concurrency` logical devices of its node work at the same time. When these are
// more than the node has cores, rates and overheads are those of the whole node, which its devices share.
struct DeviceRates {
  int concurrency = 1;
  DType dtype = DType::f32;
  double op_overhead_s = 0;      // 0: that of the device
  double launch_overhead_s = 0;  // for each of the tasks that issue at the same time; 0: that of the device
  double graph_op_overhead_s = 0, graph_launch_overhead_s = 0;  // likewise
  double gemm_launch_overhead_s = 0;  // of a matrix product, for which a library chooses a kernel; 0: that of any op
  double record_overhead_s = 0;       // host time, beside the launch, for the record of an op
  std::vector<GemmSample> gemm;
  std::vector<RateSample> memory;  // element-wise work; bytes read plus bytes written
  std::vector<RateSample> copy;    // copies inside the node's memory; bytes copied, counted once
  // The same as `memory` for kernels that were measured by themselves; the names are among kMeasuredKernels.
  std::map<std::string, std::vector<RateSample>> kernels{};
};
// `softmax` is kernel::SoftmaxCrossEntropy, `row_softmax` kernel::Softmax, `normalize_parameters` the gradients of a
// norm's parameters; the others are named as their kernels.
inline constexpr std::array<std::string_view, 18> kMeasuredKernels{"add_bias",
                                                                   "copy_many",
                                                                   "copy_strided",
                                                                   "dropout",
                                                                   "gelu",
                                                                   "gelu_gradient",
                                                                   "normalize",
                                                                   "normalize_gradient",
                                                                   "normalize_parameters",
                                                                   "relu",
                                                                   "relu_gradient",
                                                                   "rotary",
                                                                   "row_softmax",
                                                                   "row_softmax_gradient",
                                                                   "silu",
                                                                   "silu_gradient",
                                                                   "softmax",
                                                                   "sum_axis"};

// How long a thread takes to begin on a core that has been idle for so long.
struct WakeUp {
  double idle_s = 0;
  double time_s = 0;
};
inline constexpr double kWakeUpIdleS = 1e-4;  // of DeviceModel::wake_up_s

// The rates of ops on what was used a step ago, while so many logical devices have so much memory in use: that of a
// node, which shares its caches. Bytes are counted as for DeviceRates::memory.
struct InUseRates {
  int devices = 1;
  double in_use_bytes = 0;           // of all of them together, with a copy of each one's largest operands of a product
  double memory_bytes_per_s = 0;     // element-wise work, such as updates of variables
  double copy_many_bytes_per_s = 0;  // packing and unpacking of what is exchanged
};

// A kind of device. For a CPU every rate is that of one core, since a logical CPU device is one thread.
struct DeviceModel {
  std::string name;            // "NVIDIA H100 SXM5"
  std::string architecture{};  // of a GPU: "sm_90", "gfx942"; empty: unknown
  int cores = 1;               // CPU: how many logical devices work at full rate at the same time. GPU: 1
  int copy_engines = 0;        // transfers that need no processor; 0: copying occupies the device, as on a CPU
  std::map<DType, Figure> peak_flops_per_s;
  Figure memory_bandwidth_bytes_per_s;
  Figure memory_bytes;
  Figure boost_clock_hz{};    // 0: unknown
  Figure memory_latency_s{};  // of a load from device memory; 0: unknown
  int multiprocessors = 0;    // streaming multiprocessors or compute units of a GPU; 0: unknown
  Figure launch_overhead_s;   // host time to enqueue one op
  Figure op_overhead_s;       // device time that every op costs before its work
  Figure synchronize_s;       // host time from the end of work to the return of the call that waits for it
  // For an op that goes as one of many in a CUDA graph; both 0: unknown.
  Figure graph_launch_overhead_s{}, graph_op_overhead_s{};
  // CPU: until a thread begins with work that is given to it, on a core that has been idle for kWakeUpIdleS; 0:
  // unknown, or none sleeps. `wake_ups` has the times after other idle times, in rising order.
  Figure wake_up_s{};
  Figure wake_call_s{};  // CPU: host time to wake a thread that sleeps, beside the launch
  Figure hand_over_s{};  // CPU: from when a thread blocks until another one runs on its core; 0: synchronize_s
  std::vector<WakeUp> wake_ups{};
  std::vector<InUseRates> in_use{};  // CPU: by rising numbers of devices, then by rising bytes; empty: no such bounds
  Figure input_element_s{};          // host time to take one element from a dataset, without its bytes; 0: unknown
  Figure collective_slowdown{};      // how many times as long ops take beside a collective, at least 1; 0: unknown
  Figure gemm_efficiency{.value = 1, .source = "peak rate, no calibration"};  // of peak, where `rates` is empty
  Figure sustained{};  // the share of the rate of products that lasts, where power limits long runs; 0: unknown, all
  Figure sustained_quantised{};    // that of products with operands of a byte or less; 0: unknown, `sustained`
  std::vector<DeviceRates> rates;  // measured curves; empty: roofline of the figures above
  std::string id{};                // its name in the file, e.g. "gpu"; overrides refer to it
};

// What a server takes for a remote call of another machine that reads or changes one of its tensors, by default: that
// of gRPC over sockets, by which TensorFlow reaches its parameter servers. Nobody has measured it for other networks.
Figure usual_remote_call_s();
Figure usual_remote_call_bytes_per_s();

// A kind of link.
struct LinkModel {
  LinkKind kind = LinkKind::network;
  Figure bandwidth_bytes_per_s;
  Figure latency_s;
  std::string id{};  // its name in the file, e.g. "nvlink"; overrides refer to it

  // Network links only.
  std::string transport{};  // "infiniband", "roce", "efa", "tcpx", "tcpxo", "slingshot", "socket"; empty: unknown
  // What the network's software adds to every message beyond that of InfiniBand; once, not for every cable.
  Figure hop_latency_s{};
  // What NCCL believes that it is, because the network's plug-in says so. NCCL plans with it; messages take another.
  Figure advertised_latency_s{};
  // What a server takes for each remote call, one after another, beside the network: so long, and for the data at this
  // rate. Both 0: nothing.
  Figure remote_call_s = usual_remote_call_s();
  Figure remote_call_bytes_per_s = usual_remote_call_bytes_per_s();
};

// A measured collective of the vendor's library. On one node: between logical devices of one worker. On several: of a
// cluster of such machines.
struct CollectiveSample {
  std::string operation;  // "all_reduce", as in engine/collective.h
  int devices = 0;        // of all nodes together
  double bytes = 0;
  double time_s = 0;
  double relative_spread = 0;
  int nodes = 1;
  std::string algorithm{};  // "ring LL128", if it is known
};

// A key of a cluster that somebody wrote, and what it decides, as Timeline::consulted names it: "nvlink.latency".
struct StatedKey {
  std::string key;  // "cluster.overrides.nvlink.latency"
  std::vector<std::string> decides;
};

using NodeIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
inline constexpr int kNoWorker = -1;

struct Node {
  std::string name;  // unique, e.g. "w0.gpu3"
  NodeKind kind = NodeKind::network_switch;
  int worker = kNoWorker;                       // the machine it is part of; kNoWorker for the fabric
  std::shared_ptr<const DeviceModel> device{};  // cpu and gpu nodes
  std::shared_ptr<const LinkModel> port{};      // nic nodes: the rate of the network port, if known
};

// duplex: full bandwidth in both directions at the same time. half_duplex: the directions share it. one_way: data goes
// from the first node to the second only.
enum class Direction : std::uint8_t { duplex, half_duplex, one_way };

struct Link {
  NodeIndex from = 0;
  NodeIndex to = 0;
  Direction direction = Direction::duplex;
  std::shared_ptr<const LinkModel> model;
};

// What is known of a machine or cluster apart from its graph.
struct MachineFacts {
  // Whether the GPUs of one machine reach each other's memory. If not, data between them is staged in host memory.
  bool p2p = true;
  bool p2p_is_stated = false;  // else it is assumed
  // Whether two machines that send to each other do so in turn, as MPI libraries do over one connection: each then has
  // half of its rate. A machine that sends to one while it receives from another has its full rate in both directions.
  bool exchanges_in_turn = false;
  // How unevenly transfers share a link, as those over TCP do: each has a weight, and this is the standard deviation of
  // its logarithm. 0: they share it evenly.
  double share_spread = 0;
  int nvlink_domain = 1;         // how many machines share one NVSwitch, as in a rack of GB200; make_cluster joins them
  std::optional<Price> price{};  // of one machine, if somebody states it
  std::optional<double> power_w{};  // of one machine while it trains, if somebody states it
  std::vector<CollectiveSample> collectives{};
  // The keys of the fabric and of overrides, where this is a cluster; a run names those on which it does not depend.
  std::vector<StatedKey> stated_keys{};
  // The conditions of the measured figures, by name: GPU, clocks, driver, versions, date. For people to read.
  std::map<std::string, std::string> measured_with{};
  // What readers assumed, left out or changed, for people. Files that are written do not have it.
  std::vector<std::string> notes{};

  void add_notes(const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); }
  // What disturbed the measurement, in words, which is the condition "disturbed"; empty: nothing.
  std::string disturbance() const;
  void set_disturbance(std::string what) { measured_with["disturbed"] = std::move(what); }
};

class Topology {
 public:
  explicit Topology(std::string name) : name_(std::move(name)) {}

  // Building. Names must be unique, and workers numbered without gaps (UsageError).
  // Adds workers that are all like `machine`, a topology of one worker and nothing else, before anything else. They
  // have its nodes, named "w3.gpu0", and its links in its order, one worker after the other, and take no memory each.
  void add_machines(std::shared_ptr<const Topology> machine, int count);
  NodeIndex add_node(Node node);
  LinkIndex add_link(NodeIndex from, NodeIndex to, std::shared_ptr<const LinkModel> model,
                     Direction direction = Direction::duplex);
  void set_device(NodeIndex index, std::shared_ptr<const DeviceModel> device);
  void set_link_model(LinkIndex index, std::shared_ptr<const LinkModel> model);
  void set_port(NodeIndex nic, std::shared_ptr<const LinkModel> port);
  // Lets machines that set_device(), set_port() and set_link_model() have changed in the same way take no memory each,
  // and be known as alike.
  void share_alike_machines();
  // Gives each node that has a device what `other` makes of the node's kind and device, or leaves it as it is where
  // that is null. `other` is called once for a kind and a device, and machines that are alike stay alike.
  using OtherDevice = std::function<std::shared_ptr<const DeviceModel>(NodeKind, const DeviceModel&)>;
  void replace_devices(const OtherDevice& other);
  // Does the same with the models of links and ports.
  using OtherLink = std::function<std::shared_ptr<const LinkModel>(const LinkModel&)>;
  void replace_links(const OtherLink& other);

  const std::string& name() const { return name_; }
  std::size_t node_count() const { return machine_nodes() + nodes_.size(); }
  std::size_t link_count() const { return machine_links() + links_.size(); }
  Node node(NodeIndex index) const;
  Link link(LinkIndex index) const;
  std::optional<NodeIndex> find(std::string_view name) const;
  // Single facts of them, which cost less.
  NodeKind kind(NodeIndex index) const { return like(index).kind; }
  int worker(NodeIndex index) const {
    return index < machine_nodes() ? static_cast<int>(index / nodes_of_machine_) : like(index).worker;
  }
  const std::shared_ptr<const DeviceModel>& device(NodeIndex index) const { return like(index).device; }
  const LinkModel& link_model(LinkIndex index) const { return *like_link(index).model; }
  Direction direction(LinkIndex index) const { return like_link(index).direction; }

  // Workers are numbered from 0 without gaps. Nodes are in the order in which they were added.
  int worker_count() const { return machines_ + static_cast<int>(workers_.size()); }
  std::vector<NodeIndex> nodes_of(int worker, NodeKind kind) const;

  // The first `machine_count` workers were added as machines: node n of worker w, which machine(w) has as node n, is
  // node w * nodes_of_machine() + n, and links likewise.
  int machine_count() const { return machines_; }
  NodeIndex nodes_of_machine() const { return nodes_of_machine_; }
  LinkIndex links_of_machine() const { return links_of_machine_; }
  const Topology& machine(int worker) const { return changed_.empty() ? *machine_ : changed_or_like_others(worker); }
  NodeIndex machine_nodes() const { return static_cast<NodeIndex>(machines_) * nodes_of_machine_; }
  LinkIndex machine_links() const { return static_cast<LinkIndex>(machines_) * links_of_machine_; }

  const MachineFacts& facts() const { return facts_; }
  MachineFacts& facts() { return facts_; }

  // Returns the weakest provenance of the figures in use: assumed < vendor < measured.
  Provenance provenance() const;

 private:
  // The node or link itself, or the one at its place in the machine that its worker is like.
  const Node& like(NodeIndex index) const {
    if (index >= machine_nodes()) return nodes_[index - machine_nodes()];
    return machine(static_cast<int>(index / nodes_of_machine_)).nodes_[index % nodes_of_machine_];
  }
  const Link& like_link(LinkIndex index) const {
    if (index >= machine_links()) return links_[index - machine_links()];
    return machine(static_cast<int>(index / links_of_machine_)).links_[index % links_of_machine_];
  }
  const Topology& changed_or_like_others(int worker) const;
  Topology& changed_machine(int worker);

  std::string name_;
  std::shared_ptr<const Topology> machine_{};
  int machines_ = 0;
  NodeIndex nodes_of_machine_ = 0;
  LinkIndex links_of_machine_ = 0;
  std::map<int, std::shared_ptr<Topology>> changed_{};  // by worker: unlike machine_
  // What was added one by one.
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<NodeIndex>> workers_;
  std::map<std::string, NodeIndex, std::less<>> by_name_;
  MachineFacts facts_;
};

}  // namespace tandem
