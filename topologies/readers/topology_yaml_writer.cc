#include <fmt/format.h>

#include <array>
#include <set>

#include "topologies/base/error.h"
#include "topologies/base/shown.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

struct Unit {
  const char* name;
  double factor;
};

std::span<const Unit> units_of(Dimension dimension) {
  static constexpr std::array<Unit, 3> kBytes{{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}};
  static constexpr std::array<Unit, 4> kSeconds{{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  static constexpr std::array<Unit, 3> kBandwidthUnits{{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}}};
  static constexpr std::array<Unit, 2> kHertzUnits{{{"GHz", 1e9}, {"MHz", 1e6}}};
  static constexpr std::array<Unit, 2> kPowerUnits{{{"kW", 1e3}, {"W", 1}}};
  static constexpr std::array<Unit, 3> kRateUnits{{{"TFLOPS", 1e12}, {"GFLOPS", 1e9}, {"MFLOPS", 1e6}}};
  switch (dimension) {
    case Dimension::bytes:
      return kBytes;
    case Dimension::seconds:
      return kSeconds;
    case Dimension::bytes_per_second:
      return kBandwidthUnits;
    case Dimension::flops_per_second:
      return kRateUnits;
    case Dimension::hertz:
      return kHertzUnits;
    case Dimension::watts:
      return kPowerUnits;
  }
  TANDEM_UNREACHABLE("a Dimension outside its enumerators");
}

// Returns the shortest text that reads back as exactly this value.
std::string exact(double value, Dimension dimension) {
  std::string shortest = fmt::format("{}", value);
  for (const Unit& unit : units_of(dimension)) {
    if (value < unit.factor) continue;
    std::string text = fmt::format("{}", value / unit.factor);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    text += unit.name;
    if (parse_quantity(text, dimension) == value) return text;
  }
  return shortest;
}

// YAML has the escapes of shown().
std::string in_quotes(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return "\"" + shown(result) + "\"";
}

template <typename Text>
std::string written(const Figure& figure, const Text& text_of) {
  std::string text = fmt::format("{{value: {}, provenance: {}", text_of(figure.value), name_of(figure.provenance));
  if (figure.has_range()) text += fmt::format(", low: {}, high: {}", text_of(figure.low), text_of(figure.high));
  if (!figure.source.empty()) text += ", source: " + in_quotes(figure.source);
  if (!figure.date.empty()) text += ", date: " + in_quotes(figure.date);
  if (figure.relative_spread != 0) text += fmt::format(", spread: {}", figure.relative_spread);
  return text + "}";
}

std::string written(const Figure& figure, Dimension dimension) {
  return written(figure, [dimension](double value) { return exact(value, dimension); });
}

std::string written_number(const Figure& figure) {
  return written(figure, [](double value) { return fmt::format("{}", value); });
}

bool is_unknown(const Figure& figure) {
  return figure.value == 0 && figure.provenance == Provenance::assumed && figure.source.empty();
}

// Unique names for models, made from what their files called them.
template <typename Model>
class Ids {
 public:
  const std::string& add(const std::shared_ptr<const Model>& model, std::string_view fallback) {
    const auto known = ids_.find(model.get());
    if (known != ids_.end()) return known->second;
    const std::string base = model->id.empty() ? std::string(fallback) : model->id;
    std::string id = base;
    for (int suffix = 2; !taken_.insert(id).second; ++suffix) id = base + "_" + std::to_string(suffix);
    models_.push_back(model);
    return ids_.emplace(model.get(), id).first->second;
  }
  const std::vector<std::shared_ptr<const Model>>& models() const { return models_; }
  const std::string& of(const std::shared_ptr<const Model>& model) const { return ids_.at(model.get()); }

 private:
  std::map<const Model*, std::string> ids_;
  std::set<std::string> taken_;
  std::vector<std::shared_ptr<const Model>> models_;
};

class Writer {
 public:
  Writer(const Topology& topology, std::ostream& stream) : topology_(topology), stream_(stream) {
    for (NodeIndex index = 0; index < topology.node_count(); ++index) {
      const Node& node = topology.node(index);
      if (node.device) devices_.add(node.device, name_of(node.kind));
      if (node.port) links_.add(node.port, name_of(node.port->kind));
    }
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const auto& model = topology.link(index).model;
      links_.add(model, name_of(model->kind));
    }
  }

  void write() {
    line("schema_version: 1");
    line("name: {}", in_quotes(topology_.name()));
    if (topology_.facts().p2p_is_stated || !topology_.facts().p2p) line("p2p: {}", topology_.facts().p2p);
    if (topology_.facts().exchanges_in_turn) line("exchanges: in_turn");
    if (topology_.facts().share_spread > 0) line("share_spread: {}", topology_.facts().share_spread);
    if (topology_.facts().power_w) line("power: {}", exact(*topology_.facts().power_w, Dimension::watts));
    if (topology_.facts().price) line("price: {}", in_quotes(price_text(*topology_.facts().price)));
    if (topology_.facts().nvlink_domain > 1) line("nvlink_domain: {}", topology_.facts().nvlink_domain);
    if (!topology_.facts().measured_with.empty()) line("measured_with:");
    for (const auto& [name, fact] : topology_.facts().measured_with) line("  {}: {}", in_quotes(name), in_quotes(fact));
    if (!devices_.models().empty()) line("device_models:");
    for (const auto& model : devices_.models()) write_device(*model, devices_.of(model));
    if (!links_.models().empty()) line("link_models:");
    for (const auto& model : links_.models()) write_link_model(*model, links_.of(model));
    line("nodes:");
    for (NodeIndex index = 0; index < topology_.node_count(); ++index) write_node(topology_.node(index));
    if (topology_.link_count() > 0) line("links:");
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) write_link(topology_.link(index));
    if (!topology_.facts().collectives.empty()) line("collectives:");
    for (const CollectiveSample& sample : topology_.facts().collectives) write_collective(sample);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    stream_ << fmt::format(format, std::forward<Arguments>(arguments)...) << '\n';
  }

  void figure(const char* key, const Figure& figure, Dimension dimension) {
    if (!is_unknown(figure)) line("    {}: {}", key, written(figure, dimension));
  }

  // Writes a figure unless it is the one that links have anyway.
  void stated(const char* key, const Figure& figure, const Figure& usual, Dimension dimension) {
    const bool is_usual = figure.value == usual.value && figure.source == usual.source;
    if (!is_usual) line("    {}: {}", key, written(figure, dimension));
  }

  void write_device(const DeviceModel& model, const std::string& id) {
    line("  {}:", in_quotes(id));
    line("    name: {}", in_quotes(model.name));
    if (!model.architecture.empty()) line("    architecture: {}", model.architecture);
    if (model.multiprocessors > 0) line("    multiprocessors: {}", model.multiprocessors);
    line("    cores: {}", model.cores);
    line("    copy_engines: {}", model.copy_engines);
    if (!model.peak_flops_per_s.empty()) line("    peak_flops:");
    for (const auto& [dtype, peak] : model.peak_flops_per_s) {
      line("      {}: {}", name_of(dtype), written(peak, Dimension::flops_per_second));
    }
    figure("memory_bandwidth", model.memory_bandwidth_bytes_per_s, Dimension::bytes_per_second);
    figure("memory", model.memory_bytes, Dimension::bytes);
    figure("boost_clock", model.boost_clock_hz, Dimension::hertz);
    figure("memory_latency", model.memory_latency_s, Dimension::seconds);
    figure("launch_overhead", model.launch_overhead_s, Dimension::seconds);
    figure("op_overhead", model.op_overhead_s, Dimension::seconds);
    figure("synchronize", model.synchronize_s, Dimension::seconds);
    figure("graph_launch_overhead", model.graph_launch_overhead_s, Dimension::seconds);
    figure("graph_op_overhead", model.graph_op_overhead_s, Dimension::seconds);
    figure("wake_up", model.wake_up_s, Dimension::seconds);
    figure("wake_call", model.wake_call_s, Dimension::seconds);
    figure("hand_over", model.hand_over_s, Dimension::seconds);
    if (!model.wake_ups.empty()) line("    wake_ups:");
    for (const WakeUp& each : model.wake_ups) {
      line("      - {{idle: {}, time: {}}}", exact(each.idle_s, Dimension::seconds),
           exact(each.time_s, Dimension::seconds));
    }
    if (!model.in_use.empty()) line("    in_use:");
    for (const InUseRates& each : model.in_use) {
      line("      - {{devices: {}, bytes: {}, memory: {}, copy_many: {}}}", each.devices,
           exact(each.in_use_bytes, Dimension::bytes), exact(each.memory_bytes_per_s, Dimension::bytes_per_second),
           exact(each.copy_many_bytes_per_s, Dimension::bytes_per_second));
    }
    figure("input_element", model.input_element_s, Dimension::seconds);
    if (!is_unknown(model.collective_slowdown)) {
      line("    collective_slowdown: {}", written_number(model.collective_slowdown));
    }
    line("    gemm_efficiency: {}", written_number(model.gemm_efficiency));
    const auto share = [this](const char* key, const Figure& figure) {
      if (!is_unknown(figure)) line("    {}: {}", key, written_number(figure));
    };
    share("sustained", model.sustained);
    share("sustained_quantised", model.sustained_quantised);
    if (!model.rates.empty()) line("    rates:");
    for (const DeviceRates& rates : model.rates) write_rates(rates);
  }

  void write_rates(const DeviceRates& rates) {
    line("      - concurrency: {}", rates.concurrency);
    line("        dtype: {}", name_of(rates.dtype));
    for (const auto& [key, value] : {std::pair{"op_overhead", rates.op_overhead_s},
                                     {"launch_overhead", rates.launch_overhead_s},
                                     {"graph_op_overhead", rates.graph_op_overhead_s},
                                     {"graph_launch_overhead", rates.graph_launch_overhead_s},
                                     {"gemm_launch_overhead", rates.gemm_launch_overhead_s},
                                     {"record_overhead", rates.record_overhead_s}}) {
      if (value > 0) line("        {}: {}", key, exact(value, Dimension::seconds));
    }
    if (!rates.gemm.empty()) line("        gemm:");
    for (const GemmSample& gemm : rates.gemm) {
      line("          - {{m: {:.0f}, n: {:.0f}, k: {:.0f}, rate: {}}}", gemm.m, gemm.n, gemm.k,
           exact(gemm.flops_per_s, Dimension::flops_per_second));
    }
    write_samples("        ", "memory", rates.memory);
    write_samples("        ", "copy", rates.copy);
    if (!rates.kernels.empty()) line("        kernels:");
    for (const auto& [name, samples] : rates.kernels) write_samples("          ", name, samples);
  }

  void write_samples(std::string_view indent, std::string_view key, const std::vector<RateSample>& samples) {
    if (!samples.empty()) line("{}{}:", indent, key);
    for (const RateSample& sample : samples) {
      line("{}  - {{bytes: {}, rate: {}}}", indent, exact(sample.bytes, Dimension::bytes),
           exact(sample.bytes_per_s, Dimension::bytes_per_second));
    }
  }

  void write_link_model(const LinkModel& model, const std::string& id) {
    line("  {}:", in_quotes(id));
    line("    kind: {}", name_of(model.kind));
    const Figure& bandwidth = model.bandwidth_bytes_per_s;
    line("    bandwidth: {}", written(bandwidth, Dimension::bytes_per_second));
    line("    latency: {}", written(model.latency_s, Dimension::seconds));
    if (!model.transport.empty()) line("    transport: {}", model.transport);
    figure("hop_latency", model.hop_latency_s, Dimension::seconds);
    figure("advertised_latency", model.advertised_latency_s, Dimension::seconds);
    if (model.kind != LinkKind::network) return;
    stated("remote_call", model.remote_call_s, usual_remote_call_s(), Dimension::seconds);
    stated("remote_call_bandwidth", model.remote_call_bytes_per_s, usual_remote_call_bytes_per_s(),
           Dimension::bytes_per_second);
  }

  void write_node(const Node& node) {
    std::string text =
        fmt::format("{{name: {}, kind: {}, worker: {}", in_quotes(node.name), name_of(node.kind), node.worker);
    if (node.device) text += ", device: " + in_quotes(devices_.of(node.device));
    if (node.port) text += ", port: " + in_quotes(links_.of(node.port));
    line("  - {}}}", text);
  }

  void write_link(const Link& link) {
    const char* direction = link.direction == Direction::duplex        ? ""
                            : link.direction == Direction::half_duplex ? ", direction: half_duplex"
                                                                       : ", direction: one_way";
    line("  - {{from: {}, to: {}, model: {}{}}}", in_quotes(topology_.node(link.from).name),
         in_quotes(topology_.node(link.to).name), in_quotes(links_.of(link.model)), direction);
  }

  void write_collective(const CollectiveSample& sample) {
    const std::string nodes = sample.nodes == 1 ? "" : fmt::format(", nodes: {}", sample.nodes);
    const std::string algorithm =
        sample.algorithm.empty() ? "" : fmt::format(", algorithm: {}", in_quotes(sample.algorithm));
    line("  - {{operation: {}, devices: {}{}, bytes: {}, time: {}, spread: {}{}}}", sample.operation, sample.devices,
         nodes, exact(sample.bytes, Dimension::bytes), exact(sample.time_s, Dimension::seconds), sample.relative_spread,
         algorithm);
  }

  const Topology& topology_;
  std::ostream& stream_;
  Ids<DeviceModel> devices_;
  Ids<LinkModel> links_;
};

}  // namespace

void write_topology_yaml(const Topology& topology, std::ostream& stream) {
  Writer(topology, stream).write();
  if (!stream.flush()) throw Error("topology '" + topology.name() + "' could not be written");
}

}  // namespace tandem
