#include "topologies/readers/models_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "topologies/network_software.h"

namespace tandem {
namespace {

// Returns the reader of a figure's number, in its short or long form, and reads everything else.
template <typename ReadValue>
void read_any_figure(const YamlReader& value, const FigureOrigin& origin, Figure& figure, ReadValue read_value) {
  if (!value.present()) return;
  if (!value.is_map()) {
    figure = {read_value(value), origin.provenance, origin.source, origin.date, 0};
    return;
  }
  const FigureOrigin own = read_origin(value, origin);
  figure = {read_value(value.required("value")), own.provenance, own.source, own.date,
            value.optional("spread").number_within(kSpreads)};
  const YamlReader low = value.optional("low"), high = value.optional("high");
  if (!low && !high) return;
  figure.low = read_value(value.required("low"));
  figure.high = read_value(value.required("high"));
  if (!low || !high) return;
  if (figure.low > figure.value) low.error("must be at most the value");
  if (figure.high < figure.value) high.error("must be at least the value");
}

void read_ratio(const YamlReader& value, const FigureOrigin& origin, Figure& figure) {
  read_any_figure(value, origin, figure,
                  [](const YamlReader& reader) { return reader.number_within(kEfficiencies, 1); });
}

void read_slowdown(const YamlReader& value, const FigureOrigin& origin, Figure& figure) {
  read_any_figure(value, origin, figure, [](const YamlReader& reader) { return reader.number_within(kSlowdowns, 1); });
}

DType read_dtype(const YamlReader& value) {
  static const YamlReader::Words<DType> kWords = [] {
    YamlReader::Words<DType> words;
    for (const DType dtype :
         {DType::f32, DType::f64, DType::tf32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
      words.emplace_back(name_of(dtype), dtype);
    }
    return words;
  }();
  return value.one_of(kWords, DType::f32);
}

void read_peaks(const YamlReader& map, const FigureOrigin& origin, DeviceModel& model) {
  for (const auto& [name, value] : map.entries()) {
    const auto dtype = dtype_from_name(name);
    if (!dtype) {
      value.error("unknown dtype (f64, f32, tf32, f16, bf16, fp8, fp4, i64, i32, u8)");
      continue;
    }
    read_figure(value, Dimension::flops_per_second, origin, false, model.peak_flops_per_s[*dtype]);
  }
}

std::vector<RateSample> read_rate_samples(const YamlReader& list) {
  std::vector<RateSample> samples;
  for (const YamlReader& sample : list.list()) {
    samples.push_back({sample.required("bytes").quantity(Dimension::bytes),
                       sample.required("rate").quantity(Dimension::bytes_per_second)});
    if (samples.size() > 1 && samples.back().bytes <= samples[samples.size() - 2].bytes) {
      sample.optional("bytes").error("must be greater than that of the sample before");
    }
  }
  return samples;
}

std::vector<WakeUp> read_wake_ups(const YamlReader& list) {
  std::vector<WakeUp> wake_ups;
  for (const YamlReader& sample : list.list()) {
    wake_ups.push_back(
        {sample.required("idle").quantity(Dimension::seconds), sample.required("time").quantity(Dimension::seconds)});
    if (wake_ups.size() > 1 && wake_ups.back().idle_s <= wake_ups[wake_ups.size() - 2].idle_s) {
      sample.optional("idle").error("must be greater than that of the sample before");
    }
  }
  return wake_ups;
}

std::vector<InUseRates> read_in_use(const YamlReader& list) {
  std::vector<InUseRates> in_use;
  for (const YamlReader& sample : list.list()) {
    in_use.push_back({.devices = sample.required("devices").integer(1, 1 << 20, 1),
                      .in_use_bytes = sample.required("bytes").quantity(Dimension::bytes),
                      .memory_bytes_per_s = sample.required("memory").quantity(Dimension::bytes_per_second),
                      .copy_many_bytes_per_s = sample.required("copy_many").quantity(Dimension::bytes_per_second)});
    if (in_use.size() < 2) continue;
    const InUseRates &before = in_use[in_use.size() - 2], &now = in_use.back();
    if (now.devices < before.devices) {
      sample.optional("devices").error("must be at least that of the sample before");
    } else if (now.devices == before.devices && now.in_use_bytes <= before.in_use_bytes) {
      sample.optional("bytes").error("must be greater than that of the sample before");
    }
  }
  return in_use;
}

// "sm_80", "sm_100a", "gfx942", "gfx90a".
bool is_architecture(std::string_view text) {
  const bool is_amd = text.starts_with("gfx");
  if (!is_amd && !text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string_view letters = digits == std::string_view::npos ? "" : text.substr(digits);
  return !text.empty() && digits != 0 && letters.size() <= 1 &&
         letters.find_first_not_of(is_amd ? "abcdef" : "af") == letters.npos;
}

void read_architecture(const YamlReader& value, DeviceModel& model) {
  if (!value.present()) return;
  const std::string text = value.text();
  if (!text.empty() && !is_architecture(text)) {
    return value.error("expected an architecture such as sm_80 or gfx942, found '" + text + "'");
  }
  model.architecture = text;
}

DeviceRates read_rates(const YamlReader& map) {
  DeviceRates rates;
  rates.concurrency = map.optional("concurrency").integer(1, 65536, 1);
  rates.dtype = read_dtype(map.required("dtype"));
  for (const auto& [key, value] : {std::pair{"op_overhead", &rates.op_overhead_s},
                                   {"launch_overhead", &rates.launch_overhead_s},
                                   {"graph_op_overhead", &rates.graph_op_overhead_s},
                                   {"graph_launch_overhead", &rates.graph_launch_overhead_s},
                                   {"gemm_launch_overhead", &rates.gemm_launch_overhead_s},
                                   {"record_overhead", &rates.record_overhead_s}}) {
    *value = map.optional(key).quantity(Dimension::seconds, {.zero_allowed = true});
  }
  for (const YamlReader& sample : map.optional("gemm").list()) {
    const auto extent = [&](const char* key) {
      return static_cast<double>(sample.required(key).whole_number(1, std::int64_t{1} << 40, 1));
    };
    GemmSample gemm;
    gemm.m = extent("m");
    gemm.n = extent("n");
    gemm.k = extent("k");
    gemm.flops_per_s = sample.required("rate").quantity(Dimension::flops_per_second);
    rates.gemm.push_back(gemm);
  }
  rates.memory = read_rate_samples(map.optional("memory"));
  rates.copy = read_rate_samples(map.optional("copy"));
  for (const auto& [name, samples] : map.optional("kernels").entries()) {
    if (std::find(kMeasuredKernels.begin(), kMeasuredKernels.end(), name) == kMeasuredKernels.end()) {
      samples.error(fmt::format("unknown kernel ({})", fmt::join(kMeasuredKernels, ", ")));
      continue;
    }
    rates.kernels[name] = read_rate_samples(samples);
  }
  return rates;
}

// A stated 0 is known, and has a source, unlike a figure that is not there.
void read_stated_figure(const YamlReader& value, const FigureOrigin& origin, Figure& figure) {
  read_figure(value, Dimension::seconds, origin, true, figure);
  if (value.present() && figure.source.empty()) figure.source = "stated";
}

}  // namespace

FigureOrigin read_origin(const YamlReader& map, const FigureOrigin& inherited) {
  const YamlReader provenance = map.optional("provenance");
  FigureOrigin origin = provenance.present() ? FigureOrigin{} : inherited;
  origin.provenance = provenance.one_of<Provenance>(
      {{"measured", Provenance::measured}, {"vendor", Provenance::vendor}, {"assumed", Provenance::assumed}},
      origin.provenance);
  origin.source = map.optional("source").text(origin.source);
  origin.date = map.optional("date").text(origin.date);
  return origin;
}

void read_figure(const YamlReader& value, Dimension dimension, const FigureOrigin& origin, bool zero_allowed,
                 Figure& figure) {
  read_any_figure(value, origin, figure, [&](const YamlReader& reader) {
    return reader.quantity(dimension, {.otherwise = 1, .zero_allowed = zero_allowed});
  });
}

void read_device_figures(const YamlReader& map, const FigureOrigin& origin, DeviceModel& model) {
  model.cores = map.optional("cores").integer(1, 65536, model.cores);
  model.copy_engines = map.optional("copy_engines").integer(0, 1024, model.copy_engines);
  read_architecture(map.optional("architecture"), model);
  model.multiprocessors = map.optional("multiprocessors").integer(1, 4096, model.multiprocessors);
  read_peaks(map.optional("peak_flops"), origin, model);
  read_figure(map.optional("memory_bandwidth"), Dimension::bytes_per_second, origin, false,
              model.memory_bandwidth_bytes_per_s);
  read_figure(map.optional("memory"), Dimension::bytes, origin, false, model.memory_bytes);
  read_figure(map.optional("boost_clock"), Dimension::hertz, origin, false, model.boost_clock_hz);
  read_figure(map.optional("memory_latency"), Dimension::seconds, origin, false, model.memory_latency_s);
  read_figure(map.optional("launch_overhead"), Dimension::seconds, origin, true, model.launch_overhead_s);
  read_figure(map.optional("op_overhead"), Dimension::seconds, origin, true, model.op_overhead_s);
  read_figure(map.optional("synchronize"), Dimension::seconds, origin, true, model.synchronize_s);
  read_figure(map.optional("graph_launch_overhead"), Dimension::seconds, origin, true, model.graph_launch_overhead_s);
  read_figure(map.optional("graph_op_overhead"), Dimension::seconds, origin, true, model.graph_op_overhead_s);
  read_figure(map.optional("wake_up"), Dimension::seconds, origin, true, model.wake_up_s);
  read_figure(map.optional("wake_call"), Dimension::seconds, origin, true, model.wake_call_s);
  read_figure(map.optional("hand_over"), Dimension::seconds, origin, true, model.hand_over_s);
  if (const YamlReader in_use = map.optional("in_use")) model.in_use = read_in_use(in_use);
  if (const YamlReader wake_ups = map.optional("wake_ups")) model.wake_ups = read_wake_ups(wake_ups);
  read_figure(map.optional("input_element"), Dimension::seconds, origin, true, model.input_element_s);
  read_slowdown(map.optional("collective_slowdown"), origin, model.collective_slowdown);
  read_ratio(map.optional("gemm_efficiency"), origin, model.gemm_efficiency);
  read_ratio(map.optional("sustained"), origin, model.sustained);
  read_ratio(map.optional("sustained_quantised"), origin, model.sustained_quantised);
  if (const YamlReader rates = map.optional("rates")) {
    model.rates.clear();
    for (const YamlReader& entry : rates.list()) model.rates.push_back(read_rates(entry));
  }
}

void read_link_figures(const YamlReader& map, const FigureOrigin& origin, LinkModel& model) {
  read_figure(map.optional("bandwidth"), Dimension::bytes_per_second, origin, false, model.bandwidth_bytes_per_s);
  read_figure(map.optional("latency"), Dimension::seconds, origin, true, model.latency_s);
  const YamlReader transport = map.optional("transport");
  const YamlReader hop_latency = map.optional("hop_latency"), advertised = map.optional("advertised_latency");
  const YamlReader remote_call = map.optional("remote_call");
  const YamlReader remote_rate = map.optional("remote_call_bandwidth");
  if (model.kind != LinkKind::network) {
    for (const YamlReader& value : {transport, hop_latency, advertised, remote_call, remote_rate}) {
      if (value.present()) value.error("only links of kind network have one");
    }
    return;
  }
  if (transport) set_transport(read_transport(transport), model);
  read_stated_figure(hop_latency, origin, model.hop_latency_s);
  read_stated_figure(advertised, origin, model.advertised_latency_s);
  read_figure(remote_call, Dimension::seconds, origin, true, model.remote_call_s);
  read_figure(remote_rate, Dimension::bytes_per_second, origin, true, model.remote_call_bytes_per_s);
}

std::string read_transport(const YamlReader& value) {
  static const YamlReader::Words<std::string> kTransports = [] {
    YamlReader::Words<std::string> words;
    for (const char* name : {"infiniband", "roce", "efa", "tcpx", "tcpxo", "slingshot", "socket"}) {
      words.emplace_back(name, name);
    }
    return words;
  }();
  return value.one_of(kTransports, std::string());
}

DeviceModel read_device_model(const YamlReader& map, const std::string& id, const FigureOrigin& inherited) {
  DeviceModel model;
  model.id = id;
  model.name = map.optional("name").text(id);
  read_device_figures(map, read_origin(map, inherited), model);
  if (!map.is_map() || !model.rates.empty()) return model;
  map.required("memory_bandwidth");
  const YamlReader peaks = map.required("peak_flops");
  if (peaks.is_map() && peaks.entries().empty()) peaks.error("needs the rate of at least one dtype");
  return model;
}

LinkModel read_link_model(const YamlReader& map, const std::string& id, const FigureOrigin& inherited) {
  LinkModel model;
  model.id = id;
  model.kind = map.required("kind").one_of<LinkKind>({{"nvlink", LinkKind::nvlink},
                                                      {"pcie", LinkKind::pcie},
                                                      {"c2c", LinkKind::c2c},
                                                      {"cpu_interconnect", LinkKind::cpu_interconnect},
                                                      {"network", LinkKind::network}});
  read_link_figures(map, read_origin(map, inherited), model);
  map.required("bandwidth");
  map.required("latency");
  return model;
}

}  // namespace tandem
