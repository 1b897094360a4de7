#include "scenarios/calibration/pace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/fit.h"
#include "scenarios/calibration/in_use.h"
#include "scenarios/calibration/slower_devices.h"
#include "scenarios/calibration/stages.h"

namespace tandem {
namespace {

constexpr const char* kProductFact = "pace: products";
constexpr const char* kExchangeFact = "pace: exchanges";

// Returns how many times as long something takes; 1 where it is not known.
double ratio_of(double before, double now) {
  return before > 0 && now > 0 ? now / before : 1;
}

constexpr int kMostDevices = 2;
constexpr std::int64_t kExchangeBytes = std::int64_t{1} << 20;

// Returns what the rates of the topology's CPU devices make of an op of each kind; 0 if they were not measured.
double update_s_of(const Topology& topology, int devices) {
  for (NodeIndex node = 0; node < topology.node_count(); ++node) {
    const auto& device = topology.device(node);
    if (!device) continue;
    const int measured = std::clamp(devices, 1, std::min(device->cores, kMostDevices));
    const auto in_use_bytes =
        static_cast<double>(calibration::kUsualInUseBytes + measured * calibration::kInUseOperandBytes);
    for (const InUseRates& rates : device->in_use) {
      if (rates.devices != measured || rates.in_use_bytes != in_use_bytes) continue;
      return static_cast<double>(calibration::kInUseUpdateBytes) / rates.memory_bytes_per_s +
             2 * static_cast<double>(calibration::kInUseCopyBytes) / rates.copy_many_bytes_per_s;
    }
  }
  return 0;
}

void run_exchanges(Worker& worker) {
  constexpr int kRounds = 8, kExchanges = 3;
  std::vector<DeviceId> ids;
  std::vector<Stream*> streams;
  std::vector<Tensor> buffers;
  for (Device* device : worker.devices()) {
    ids.push_back(device->id());
    streams.push_back(&device->compute_stream());
    buffers.push_back(device->allocate(DType::f32, {kExchangeBytes / 4}));
    streams.back()->launch(op::fill(buffers.back(), 0));
  }
  if (ids.size() < 2) return;
  Communicator& group = worker.communicator(ids);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kExchanges; ++i) group.all_reduce(buffers, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
  }
}

// Returns the times of an op of each of these kinds together. Medians, because two cores that are threads of one are
// slow only while both of them work.
template <std::size_t N>
double time_of(const std::vector<Record>& records, const std::array<std::string_view, N>& kinds) {
  double sum = 0;
  for (const std::string_view kind : kinds) {
    const std::string label = calibration::in_use_label(kind, calibration::kUsualInUseBytes);
    std::vector<double> times;
    for (const Record& record : records) {
      if (record.kind != RecordKind::op || record.name != label) continue;
      times.push_back(static_cast<double>(record.end_ns - record.start_ns) * 1e-9);
    }
    sum += calibration::median_of(std::move(times));
  }
  return sum;
}

std::optional<double> fact_of(const Topology& topology, const char* name) {
  const auto found = topology.facts().measured_with.find(name);
  if (found == topology.facts().measured_with.end()) return std::nullopt;
  double value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0)) return std::nullopt;
  return value;
}

double distance(double before, double now, double usual) {
  if (before <= 0 || now <= 0) return 0;
  return (std::max(before / now, now / before) - 1) / usual;
}

}  // namespace

MachinePace measure_pace(std::string_view engine, int devices) {
  EngineOptions options;
  options.records = RecordLevel::all;
  const std::unique_ptr<Engine> probe = [&] {
    EngineOptions one = options;
    one.workers = {WorkerSpec{.job = "localhost", .device_type = DeviceType::cpu, .device_count = 1}};
    return open_engine(engine, std::move(one));
  }();
  int cores = 1;
  for (const Hardware& hardware : probe->capabilities().hardware) {
    if (hardware.type == DeviceType::cpu) cores = std::max(cores, hardware.cores);
  }
  options.workers = {WorkerSpec{.job = "localhost",
                                .device_type = DeviceType::cpu,
                                .device_count = std::clamp(devices, 1, std::min(cores, kMostDevices))}};
  const calibration::Plan plan{.gemm_dtypes = {},
                               .gemm_sides = {},
                               .memory_bytes = {},
                               .copy_bytes = {},
                               .collective_bytes = {},
                               .in_use_bytes = {calibration::kUsualInUseBytes},
                               .repetitions = 3};
  const Timeline timeline = open_engine(engine, std::move(options))->run([&](Worker& worker) {
    run_exchanges(worker);
    calibration::measure_in_use(worker, plan);
  });
  // Threads that had to wake up first only add time, too.
  std::vector<double> exchanges;
  for (const CollectiveTiming& call : collective_timings(timeline.records)) {
    if (call.record->bytes == static_cast<double>(kExchangeBytes))
      exchanges.push_back(static_cast<double>(call.until_first_end_ns) * 1e-9);
  }
  return {.product_s = time_of(timeline.records, calibration::kInUseProducts),
          .exchange_s = exchanges.empty() ? 0 : calibration::lower_quartile_of(std::move(exchanges)),
          .update_s = time_of(timeline.records, calibration::kInUseWork)};
}

std::optional<MachinePace> pace_of(const Topology& topology, int devices) {
  const std::optional<double> product_s = fact_of(topology, kProductFact);
  if (!product_s) return std::nullopt;
  return MachinePace{.product_s = *product_s,
                     .exchange_s = fact_of(topology, kExchangeFact).value_or(0),
                     .update_s = update_s_of(topology, devices)};
}

void set_pace(Topology& topology, const MachinePace& pace) {
  std::map<std::string, std::string> facts = topology.facts().measured_with;
  facts[kProductFact] = fmt::format("{:.4g} s", pace.product_s);
  if (pace.exchange_s > 0) facts[kExchangeFact] = fmt::format("{:.4g} s", pace.exchange_s);
  topology.facts().measured_with = std::move(facts);
}

double distance_between(const MachinePace& before, const MachinePace& now) {
  constexpr double kUsualOfProducts = 0.1, kUsualOfOthers = 0.4;
  return std::max({distance(before.product_s, now.product_s, kUsualOfProducts),
                   distance(before.exchange_s, now.exchange_s, kUsualOfOthers),
                   distance(before.update_s, now.update_s, kUsualOfOthers)});
}

MachinePace mean_of(const std::vector<MachinePace>& paces) {
  TANDEM_CHECK(!paces.empty(), "the mean of no pace");
  const auto count = static_cast<double>(paces.size());
  MachinePace mean;
  for (const MachinePace& pace : paces) {
    mean.product_s += pace.product_s / count;
    mean.exchange_s += pace.exchange_s / count;
    mean.update_s += pace.update_s / count;
  }
  return mean;
}

std::string change_text(const MachinePace& before, const MachinePace& now) {
  std::vector<std::string> changes;
  const auto add = [&](const char* what, double from, double to) {
    if (from <= 0 || to <= 0) return;
    const double longer = 100 * (to / from - 1);
    changes.push_back(fmt::format("{} take {:.0f} % {}", what, std::abs(longer), longer < 0 ? "less" : "longer"));
  };
  add("products", before.product_s, now.product_s);
  add("exchanges between cores", before.exchange_s, now.exchange_s);
  add("updates", before.update_s, now.update_s);
  return fmt::format("{}", fmt::join(changes, ", "));
}

MachinePace quicker_of(const MachinePace& before, const MachinePace& after) {
  return {.product_s = std::min(before.product_s, after.product_s),
          .exchange_s = std::min(before.exchange_s, after.exchange_s),
          .update_s = std::min(before.update_s, after.update_s)};
}

Topology at_pace(const Topology& topology, const MachinePace& usual, const MachinePace& now) {
  const double products = ratio_of(usual.product_s, now.product_s);
  Topology changed = with_slower_devices(topology, products, "the machine's pace");
  const double updates = ratio_of(usual.update_s, now.update_s) / products;
  changed.replace_devices([&](NodeKind, const DeviceModel& model) -> std::shared_ptr<const DeviceModel> {
    if (model.in_use.empty()) return nullptr;
    auto slowed = std::make_shared<DeviceModel>(model);
    for (InUseRates& rates : slowed->in_use) {
      rates.memory_bytes_per_s /= updates;
      rates.copy_many_bytes_per_s /= updates;
    }
    return slowed;
  });
  std::vector<CollectiveSample> collectives = changed.facts().collectives;
  for (CollectiveSample& sample : collectives) sample.time_s *= ratio_of(usual.exchange_s, now.exchange_s);
  changed.facts().collectives = std::move(collectives);
  return changed;
}

}  // namespace tandem
