#include "scenarios/calibrate.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include "scenarios/calibration_program.h"

namespace tandem {
namespace {

struct Statistic {
  double median = 0;
  double relative_spread = 0;
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Statistic statistic_of(const std::vector<double>& values) {
  TANDEM_CHECK(!values.empty(), "a calibration left no records of something it issued");
  const double median = median_of(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return {.median = median, .relative_spread = median > 0 ? median_of(deviations) / median : 0};
}

// At least the clock's step: nothing takes no time.
double duration_s(const Record& record) {
  return static_cast<double>(std::max<Nanoseconds>(1, record.end_ns - record.start_ns)) * 1e-9;
}

// One run of the plan with `devices` devices at once.
struct Measurement {
  int devices = 1;
  Timeline timeline;
  HostSamples host;
};

Measurement measure(std::string_view engine, int devices, const CalibrationPlan& plan,
                    const std::function<void(std::string_view)>& stage) {
  Measurement measurement{.devices = devices, .timeline = {}, .host = {}};
  EngineOptions options;
  options.workers = {WorkerSpec{.job = "localhost", .device_count = devices}};
  measurement.timeline = open_engine(engine, std::move(options))->run([&](Worker& worker) {
    run_calibration(worker, plan, measurement.host, stage);
  });
  return measurement;
}

std::map<std::string, std::vector<double>> durations_by_label(const Timeline& timeline) {
  std::map<std::string, std::vector<double>> durations;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::op) durations[record.name].push_back(duration_s(record));
  }
  return durations;
}

DeviceRates rates_of(const Measurement& measurement, const CalibrationPlan& plan) {
  DeviceRates rates{.concurrency = measurement.devices, .dtype = DType::f32, .gemm = {}, .memory = {}, .copy = {}};
  const auto durations = durations_by_label(measurement.timeline);
  for (const auto& [m, n, k] : plan.gemm_shapes()) {
    const double time_s = statistic_of(durations.at(gemm_label(m, n, k))).median;
    rates.gemm.push_back({.m = static_cast<double>(m),
                          .n = static_cast<double>(n),
                          .k = static_cast<double>(k),
                          .flops_per_s = 2.0 * static_cast<double>(m * n * k) / time_s});
  }
  for (const std::int64_t bytes : plan.memory_bytes) {
    const double time_s = statistic_of(durations.at(memory_label(bytes))).median;
    rates.memory.push_back({.bytes = static_cast<double>(bytes), .bytes_per_s = static_cast<double>(bytes) / time_s});
  }
  std::map<double, std::vector<double>> copies;
  for (const Record& record : measurement.timeline.records) {
    if (record.kind == RecordKind::copy) copies[record.bytes].push_back(duration_s(record));
  }
  for (const auto& [bytes, times] : copies) {
    rates.copy.push_back({.bytes = bytes, .bytes_per_s = bytes / statistic_of(times).median});
  }
  return rates;
}

// From the last rank's arrival to the last rank's end, as reports count it.
void add_collectives(Topology& topology, const Measurement& measurement) {
  struct Call {
    Nanoseconds start = 0, end = 0;
    std::string operation;
    double bytes = 0;
  };
  std::map<std::int64_t, Call> calls;
  for (const Record& record : measurement.timeline.records) {
    if (record.kind != RecordKind::collective) continue;
    Call& call = calls[record.sequence];
    call.start = std::max(call.start, record.start_ns);
    call.end = std::max(call.end, record.end_ns);
    call.operation = record.name;
    call.bytes = record.bytes;
  }
  std::map<std::pair<std::string, double>, std::vector<double>> times;
  for (const auto& [sequence, call] : calls) {
    times[{call.operation, call.bytes}].push_back(static_cast<double>(std::max<Nanoseconds>(1, call.end - call.start)) *
                                                  1e-9);
  }
  for (const auto& [key, samples] : times) {
    const Statistic time = statistic_of(samples);
    topology.add_collective({.operation = key.first,
                             .devices = measurement.devices,
                             .bytes = key.second,
                             .time_s = time.median,
                             .relative_spread = time.relative_spread});
  }
}

// Start to start of ops that do nothing: what a stream spends on every op.
Statistic op_overhead(const Measurement& measurement) {
  std::vector<double> gaps;
  const Record* previous = nullptr;
  for (const Record& record : measurement.timeline.records) {
    if (record.name != kTinyOpLabel) continue;
    if (previous && previous->device == record.device) {
      gaps.push_back(static_cast<double>(record.start_ns - previous->start_ns) * 1e-9);
    }
    previous = &record;
  }
  return statistic_of(gaps);
}

Statistic synchronize_time(const Measurement& measurement) {
  std::vector<double> times;
  std::size_t i = 0;
  for (const Record& record : measurement.timeline.records) {
    if (record.name != kSynchronizeLabel) continue;
    times.push_back(static_cast<double>(measurement.host.synchronize_return_ns.at(i++) - record.end_ns) * 1e-9);
  }
  return statistic_of(times);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "processor";
}

DeviceModel model_of(const std::vector<Measurement>& measurements, const CalibrationPlan& plan) {
  const auto measured = [date = today()](double value, double spread, std::string what) {
    return Figure{value, Provenance::measured, "tandem calibrate: " + std::move(what), date, spread};
  };
  DeviceModel model;
  model.name = processor_name();
  model.cores = static_cast<int>(std::thread::hardware_concurrency());
  for (const Measurement& measurement : measurements) model.rates.push_back(rates_of(measurement, plan));
  const DeviceRates& alone = model.rates.front();
  const auto fastest = std::max_element(alone.gemm.begin(), alone.gemm.end(),
                                        [](const auto& a, const auto& b) { return a.flops_per_s < b.flops_per_s; });
  model.peak_flops_per_s[DType::f32] = measured(fastest->flops_per_s, 0, "fastest GEMM of one core");
  model.memory_bandwidth_bytes_per_s =
      measured(alone.memory.back().bytes_per_s, 0, "largest element-wise op, one core");
  model.memory_bytes = measured(
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)), 0, "physical memory");
  const Statistic launch = statistic_of(measurements.front().host.launch_s);
  model.launch_overhead_s = measured(launch.median, launch.relative_spread, "host time per issued op");
  const Statistic overhead = op_overhead(measurements.front());
  model.op_overhead_s = measured(overhead.median, overhead.relative_spread, "start to start of empty ops");
  const Statistic synchronize = synchronize_time(measurements.front());
  model.synchronize_s = measured(synchronize.median, synchronize.relative_spread, "end of work to return of the wait");
  model.gemm_efficiency = measured(1, 0, "the GEMM samples hold the rates");
  return model;
}

}  // namespace

Topology calibrate(std::string_view engine, const CalibrateOptions& options) {
  const CalibrationPlan plan = options.quick ? CalibrationPlan::quick() : CalibrationPlan::full();
  const int devices = options.max_devices > 0 ? options.max_devices
                                              : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  std::vector<Measurement> measurements;
  for (int n = 1; n <= devices; ++n) {
    measurements.push_back(measure(engine, n, plan, [&](std::string_view stage) {
      if (options.progress)
        options.progress(fmt::format("calibrating {}, {} of {} devices", stage, n, devices), n - 1, devices);
    }));
  }
  Topology topology(fmt::format("{} ({} calibration)", processor_name(), options.quick ? "quick" : "full"));
  topology.add_node({.name = "w0.cpu0",
                     .kind = NodeKind::cpu,
                     .worker = 0,
                     .device = std::make_shared<const DeviceModel>(model_of(measurements, plan))});
  for (const Measurement& measurement : measurements) add_collectives(topology, measurement);
  return topology;
}

std::shared_ptr<const Topology> machine_topology(std::string_view engine, const CalibrateOptions& options) {
  CalibrateOptions quick = options;
  quick.quick = true;
  return std::make_shared<const Topology>(calibrate(engine, quick));
}

}  // namespace tandem
