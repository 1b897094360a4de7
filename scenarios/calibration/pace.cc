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

namespace tandem {
namespace {

constexpr std::string_view kProductLabel = "pace";
constexpr const char* kProductFact = "pace of products";
constexpr const char* kExchangeFact = "pace of exchanges";

void run_known_ops(Worker& worker) {
  constexpr int kRounds = 8, kProducts = 3, kExchanges = 3;
  constexpr std::int64_t kSide = 256, kElements = 256 * 1024;
  std::vector<DeviceId> ids;
  std::vector<Stream*> streams;
  std::vector<Tensor> buffers, matrices;
  for (Device* device : worker.devices()) {
    ids.push_back(device->id());
    streams.push_back(&device->compute_stream());
    buffers.push_back(device->allocate(DType::f32, {kElements}));
    matrices.push_back(device->allocate(DType::f32, {3 * kSide, kSide}));
    streams.back()->launch(op::fill(buffers.back(), 0));
    streams.back()->launch(op::fill(matrices.back(), 0));
  }
  Communicator* const group = ids.size() > 1 ? &worker.communicator(ids) : nullptr;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kProducts; ++i) {
      for (std::size_t d = 0; d < streams.size(); ++d) {
        const auto part = [&](std::int64_t n) {
          return matrices[d].flat_slice(n * kSide * kSide, kSide * kSide).reshape({kSide, kSide});
        };
        Op op = op::gemm(part(0), part(1), part(2));
        op.name = kProductLabel;
        streams[d]->launch(std::move(op));
      }
    }
    for (int i = 0; i < kExchanges && group != nullptr; ++i) group->all_reduce(buffers, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
  }
}

std::optional<double> fact_of(const Topology& topology, const char* name) {
  const auto found = topology.measured_with().find(name);
  if (found == topology.measured_with().end()) return std::nullopt;
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
  options.workers = {WorkerSpec{
      .job = "localhost", .device_type = DeviceType::cpu, .device_count = std::clamp(devices, 1, std::min(cores, 2))}};
  const Timeline timeline = open_engine(engine, std::move(options))->run(run_known_ops);
  std::vector<double> products, exchanges;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::op && record.name == kProductLabel) {
      products.push_back(static_cast<double>(record.end_ns - record.start_ns) * 1e-9);
    }
  }
  for (const CollectiveTiming& call : collective_timings(timeline.records)) {
    exchanges.push_back(static_cast<double>(call.until_first_end_ns) * 1e-9);
  }
  // Interruptions, and threads that had to wake up first, only add time.
  return {.product_s = calibration::lower_quartile_of(std::move(products)),
          .exchange_s = exchanges.empty() ? 0 : calibration::lower_quartile_of(std::move(exchanges))};
}

std::optional<MachinePace> pace_of(const Topology& topology) {
  const std::optional<double> product_s = fact_of(topology, kProductFact);
  if (!product_s) return std::nullopt;
  return MachinePace{.product_s = *product_s, .exchange_s = fact_of(topology, kExchangeFact).value_or(0)};
}

void set_pace(Topology& topology, const MachinePace& pace) {
  std::map<std::string, std::string> facts = topology.measured_with();
  facts[kProductFact] = fmt::format("{:.4g} s", pace.product_s);
  if (pace.exchange_s > 0) facts[kExchangeFact] = fmt::format("{:.4g} s", pace.exchange_s);
  topology.set_measured_with(std::move(facts));
}

double distance_between(const MachinePace& before, const MachinePace& now) {
  constexpr double kUsualOfProducts = 0.1, kUsualOfExchanges = 0.4;
  return std::max(distance(before.product_s, now.product_s, kUsualOfProducts),
                  distance(before.exchange_s, now.exchange_s, kUsualOfExchanges));
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
  return fmt::format("{}", fmt::join(changes, ", "));
}

}  // namespace tandem
