#include "scenarios/calibration/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace tandem::calibration {
namespace {

// Returns the runs whose rates count, by rising numbers of devices on one place.
std::vector<const Measurement*> working_runs(const DeviceMeasurements& measurements) {
  std::vector<const Measurement*> runs;
  for (const Measurement& run : measurements.runs) {
    if (run.parts.work) runs.push_back(&run);
  }
  TANDEM_CHECK(!runs.empty(), "a calibration without work");
  return runs;
}

class Sources {
 public:
  Sources(const Plan& plan, std::string date) : repetitions_(plan.repetitions), date_(std::move(date)) {}
  Figure measured(double value, double spread, std::string_view what) const {
    return {value, Provenance::measured, fmt::format("tandem calibrate: {}; {} or more times", what, repetitions_),
            date_, spread};
  }
  Figure stated(double value, std::string_view by) const {
    return {value, Provenance::measured, fmt::format("tandem calibrate: {}", by), date_, 0};
  }

 private:
  int repetitions_;
  std::string date_;
};

void set_peaks(DeviceModel& model, const Rates& rates, const Sources& sources) {
  for (const auto& [shape, rate] : rates.gemm) {
    Figure& peak = model.peak_flops_per_s[shape.dtype];
    if (rate.per_s <= peak.value) continue;
    peak = sources.measured(rate.per_s, rate.relative_spread,
                            fmt::format("fastest matrix product, {}x{}x{}", shape.m, shape.n, shape.k));
  }
}

void set_overheads(DeviceModel& model, const Measurement& alone, const Sources& sources) {
  const Overheads overheads = overheads_of(alone);
  model.launch_overhead_s = sources.measured(overheads.launch.median, overheads.launch.relative_spread,
                                             "host time before the next op can start");
  const bool is_unrecorded = !alone.findings.unrecorded.empty();
  model.op_overhead_s = sources.measured(
      overheads.op.median, overheads.op.relative_spread,
      is_unrecorded ? "queued ops that do nothing, without records" : "start to start of queued ops that do nothing");
  if (const auto graphs = graph_overheads_of(alone)) {
    model.graph_launch_overhead_s = sources.measured(graphs->launch.median, graphs->launch.relative_spread,
                                                     "host time before the next op of a graph can start");
    model.graph_op_overhead_s =
        sources.measured(graphs->op.median, graphs->op.relative_spread, "queued ops of graphs that do nothing");
  }
  const Statistic synchronize = synchronize_time(alone);
  model.synchronize_s =
      sources.measured(synchronize.median, synchronize.relative_spread, "end of work to return of the wait");
}

// Where the machine was interrupted, cores were idle for longer than they should: samples rise in both.
std::vector<WakeUp> wake_ups_of(const std::vector<MeasuredWakeUp>& measured, double least_s) {
  std::vector<WakeUp> wake_ups;
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const double idle_s = measured[i].idle_s;
    if (idle_s <= (wake_ups.empty() ? kWakeUpIdleS : wake_ups.back().idle_s)) continue;
    least_s = std::max(least_s, measured[i].time.median);
    wake_ups.push_back({idle_s, least_s});
  }
  return wake_ups;
}

// Figures of threads of a host, which a device without threads lacks.
// `busiest` is the run with the most devices.
void set_host_times(DeviceModel& model, const Measurement& alone, const Measurement& busiest, const Sources& sources) {
  if (const std::vector<MeasuredWakeUp> waking = wake_up_times(alone); !waking.empty()) {
    const Statistic& soon = waking.front().time;
    model.wake_up_s = sources.measured(soon.median, soon.relative_spread, "issue to start on a sleeping stream");
    if (soon.median > 0) model.wake_ups = wake_ups_of(waking, soon.median);
  }
  if (!alone.findings.wake_call_s.empty()) {
    const Statistic call = statistic_of(alone.findings.wake_call_s);
    model.wake_call_s = sources.measured(std::max(0.0, call.median - model.launch_overhead_s.value),
                                         call.relative_spread, "host time to issue to a sleeping stream");
  }
  if (const auto handing = hand_over_time(alone)) {
    model.hand_over_s = sources.measured(handing->median, handing->relative_spread,
                                         "end of an op to start of one of another stream that waits for it");
  }
  if (busiest.findings.input_element_s.empty()) return;
  const Statistic element = statistic_of(busiest.findings.input_element_s);
  model.input_element_s =
      sources.measured(element.median, element.relative_spread, "batches of a shuffled dataset, by element");
}

// Returns whether a product waits for concurrent copies from the host.
bool copies_occupy(const DeviceMeasurements& measurements) {
  return measurements.type == DeviceType::cpu || working_runs(measurements).front()->findings.overlap < 0.5;
}

// Nothing gets faster while a collective runs, so a factor below 1 is noise.
void set_slowdown(DeviceModel& model, const DeviceMeasurements& measurements, const Sources& sources) {
  for (const Measurement& run : measurements.runs) {
    if (run.findings.slowdowns.empty()) continue;
    const Statistic slowdown = statistic_of(run.findings.slowdowns);
    model.collective_slowdown = sources.measured(std::max(1.0, slowdown.median), slowdown.relative_spread,
                                                 "matrix products beside all-reduces, by those alone");
  }
}

// The measured links between the host and the devices, and between the devices.
class Links {
 public:
  Links(Topology& topology, const MeasuredMachine& machine) : topology_(topology) {
    for (const Measurement& run : machine.devices.runs.empty() ? machine.host.runs : machine.devices.runs) {
      if (run.parts.routes.empty()) continue;
      routes_ = run.parts.routes;
      figures_ = links_of(run);
      sources_.emplace(run.plan, machine.date);
    }
  }

  void add(NodeIndex host, const std::vector<NodeIndex>& places, LinkKind to_host) {
    host_ = host;
    places_ = places;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (is_of_host(routes_[i])) add_one_way(i, to_host);
    }
    const LinkKind between = peer_kind(to_host);
    if (has_equal_peers() && places_.size() > 2) return add_switch(between);
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (!is_of_host(routes_[i])) add_one_way(i, between);
    }
  }

 private:
  static bool is_of_host(const Route& route) { return route.from == kHost || route.to == kHost; }

  NodeIndex node_of(int end) const { return end == kHost ? host_ : places_.at(static_cast<std::size_t>(end)); }

  std::string name_of_end(int end) const {
    const std::string& name = topology_.node(node_of(end)).name;
    return name.substr(name.find('.') + 1);
  }

  std::shared_ptr<const LinkModel> model_of(const Line& line, const Statistic& least, const Statistic& most,
                                            LinkKind kind, std::string id) const {
    return std::make_shared<const LinkModel>(
        LinkModel{.kind = kind,
                  .bandwidth_bytes_per_s =
                      sources_->measured(line.bytes_per_s, most.relative_spread, "copies, a line over sizes"),
                  .latency_s = sources_->measured(line.latency_s, least.relative_spread, "copies, a line over sizes"),
                  .id = std::move(id)});
  }

  void add_one_way(std::size_t i, LinkKind kind) {
    const auto& [from, to] = routes_[i];
    const auto& [line, least, most] = figures_[i];
    topology_.add_link(node_of(from), node_of(to),
                       model_of(line, least, most, kind, fmt::format("{}_to_{}", name_of_end(from), name_of_end(to))),
                       Direction::one_way);
  }

  // GPUs with links between them exchange data faster with each other than with the host.
  LinkKind peer_kind(LinkKind to_host) const {
    double host = 0, peers = 0;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      double& most = is_of_host(routes_[i]) ? host : peers;
      most = std::max(most, figures_[i].line.bytes_per_s);
    }
    return host > 0 && peers > 1.5 * host ? LinkKind::nvlink : to_host;
  }

  std::vector<const LinkFigures*> peers() const {
    std::vector<const LinkFigures*> found;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (!is_of_host(routes_[i])) found.push_back(&figures_[i]);
    }
    return found;
  }

  template <typename Value>
  double peer_median(Value value) const {
    std::vector<double> values;
    for (const LinkFigures* peer : peers()) values.push_back(value(*peer));
    return median_of(std::move(values));
  }

  bool has_equal_peers() const {
    constexpr double kTolerance = 0.25;
    if (peers().empty()) return false;
    const double median = peer_median([](const LinkFigures& peer) { return peer.line.bytes_per_s; });
    for (const LinkFigures* peer : peers()) {
      if (std::abs(peer->line.bytes_per_s / median - 1) > kTolerance) return false;
    }
    return true;
  }

  // Each device has a port on one switch, so that all that is sent to a device shares its port.
  void add_switch(LinkKind kind) {
    const Line line{.latency_s = peer_median([](const LinkFigures& peer) { return peer.line.latency_s; }) / 2,
                    .bytes_per_s = peer_median([](const LinkFigures& peer) { return peer.line.bytes_per_s; }),
                    .relative_error = 0};
    const auto model = model_of(line, peers().front()->least, peers().front()->most, kind, "peers");
    const bool is_nvlink = kind == LinkKind::nvlink;
    const NodeIndex middle = topology_.add_node({.name = is_nvlink ? "w0.nvswitch0" : "w0.switch0",
                                                 .kind = is_nvlink ? NodeKind::nvswitch : NodeKind::pcie_switch,
                                                 .worker = 0});
    for (const NodeIndex place : places_) topology_.add_link(middle, place, model);
  }

  Topology& topology_;
  std::vector<Route> routes_;
  std::vector<LinkFigures> figures_;
  std::optional<Sources> sources_;
  NodeIndex host_ = 0;
  std::vector<NodeIndex> places_;
};

std::vector<NodeIndex> add_nodes(Topology& topology, const DeviceMeasurements& measurements, const std::string& date) {
  const bool is_gpu = measurements.type == DeviceType::gpu;
  const auto model = std::make_shared<const DeviceModel>(model_of(measurements, date));
  std::vector<NodeIndex> nodes;
  for (int place = 0; place < measurements.places; ++place) {
    nodes.push_back(topology.add_node({.name = fmt::format("w0.{}{}", is_gpu ? "gpu" : "cpu", place),
                                       .kind = is_gpu ? NodeKind::gpu : NodeKind::cpu,
                                       .worker = 0,
                                       .device = model}));
  }
  return nodes;
}

void add_facts(Topology& topology, const MeasuredMachine& machine) {
  const DeviceMeasurements& measured = machine.devices.runs.empty() ? machine.host : machine.devices;
  const Measurement& last = measured.runs.back();
  std::map<std::string, std::string> facts = last.timeline.settings;
  facts["engine"] = last.timeline.engine;
  facts["date"] = machine.date;
  facts["processor"] = machine.host.runs.front().hardware.name;
  facts["logical_devices"] = fmt::format("{} on {}", last.devices, measured.places);
  facts["repetitions"] = fmt::format("{} or more", last.plan.repetitions);
  topology.facts().measured_with = std::move(facts);
}

}  // namespace

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

DeviceModel model_of(const DeviceMeasurements& measurements, const std::string& date) {
  const std::vector<const Measurement*> runs = working_runs(measurements);
  const Measurement& alone = *runs.front();
  const Sources sources(alone.plan, date);
  DeviceModel model;
  model.name = alone.hardware.name;
  model.cores = alone.hardware.cores;
  model.copy_engines = copies_occupy(measurements) ? 0 : 1;
  const Rates rates = rates_of(alone);
  set_peaks(model, rates, sources);
  const auto& [bytes, memory] = *rates.memory.at(DType::f32).rbegin();
  model.memory_bandwidth_bytes_per_s =
      sources.measured(memory.per_s, memory.relative_spread, fmt::format("element-wise op over {:.0f} bytes", bytes));
  model.memory_bytes = sources.stated(alone.hardware.memory_bytes, "as the machine says");
  model.gemm_efficiency = sources.stated(1, "the GEMM samples hold the rates");
  set_overheads(model, alone, sources);
  set_slowdown(model, measurements, sources);
  set_host_times(model, alone, *runs.back(), sources);
  for (const Measurement& run : measurements.runs) {
    const std::vector<InUseRates> in_use = in_use_rates(run);
    model.in_use.insert(model.in_use.end(), in_use.begin(), in_use.end());
  }
  for (const Measurement* run : runs) {
    for (DeviceRates& entry : device_rates(*run, model.copy_engines == 0)) model.rates.push_back(std::move(entry));
  }
  return model;
}

Topology topology_of(const MeasuredMachine& machine) {
  Topology topology(machine.name);
  const std::vector<NodeIndex> cpus = add_nodes(topology, machine.host, machine.date);
  const bool has_devices = !machine.devices.runs.empty();
  const std::vector<NodeIndex> places = has_devices ? add_nodes(topology, machine.devices, machine.date) : cpus;
  Links(topology, machine).add(cpus.front(), places, has_devices ? LinkKind::pcie : LinkKind::cpu_interconnect);
  for (const Measurement& run : has_devices ? machine.devices.runs : machine.host.runs) {
    for (CollectiveSample& sample : collective_samples(run)) topology.facts().collectives.push_back(std::move(sample));
  }
  add_facts(topology, machine);
  return topology;
}

}  // namespace tandem::calibration
