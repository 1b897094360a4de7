#include "scenarios/calibration/figures.h"

#include <algorithm>
#include <array>

#include "scenarios/calibration/in_use.h"

namespace tandem::calibration {
namespace {

constexpr double kEventResolutionS = 0.5e-6;  // of the times of work on GPUs: that of CUDA's events

// Returns at least one step of the clock, because everything takes some time.
double duration_s(const Record& record) {
  return static_cast<double>(std::max<Nanoseconds>(1, record.end_ns - record.start_ns)) * 1e-9;
}

// Returns the part of a record that is work, but at least a twentieth of the record, so that there is always a rate.
double work_s(double time_s, double in_record_s) {
  return std::max(time_s - in_record_s, time_s / 20);
}

std::vector<double> durations_of(const Measurement& measurement, std::string_view label) {
  std::vector<double> durations;
  for (const Record& record : measurement.timeline.records) {
    if (record.kind == RecordKind::op && record.name == label) durations.push_back(duration_s(record));
  }
  return durations;
}

// Returns the times from start to start of consecutive ops on each device.
std::vector<double> intervals_of(const Measurement& measurement, std::string_view label) {
  std::vector<double> intervals;
  std::map<int, Nanoseconds> before;  // by device
  for (const Record& record : measurement.timeline.records) {
    if (record.kind != RecordKind::op || record.name != label) continue;
    const auto [previous, is_first] = before.try_emplace(record.device, record.start_ns);
    if (!is_first) intervals.push_back(static_cast<double>(record.start_ns - previous->second) * 1e-9);
    previous->second = record.start_ns;
  }
  return intervals;
}

// What a CPU shares with others, such as caches, only adds time, for seconds at a time: the lower quartile of several
// passes is that of its usual pace.
double usual_of(const Measurement& measurement, const std::vector<double>& times) {
  return measurement.hardware.type == DeviceType::cpu && measurement.is_of_one_process ? lower_quartile_of(times)
                                                                                       : median_of(times);
}

Rate rate_of(const Measurement& measurement, double amount, const std::vector<double>& times, double in_record_s) {
  return {.per_s = amount / work_s(usual_of(measurement, times), in_record_s),
          .relative_spread = statistic_of(times).relative_spread};
}

std::vector<RateSample> samples_of(const std::map<double, Rate>& rates, double factor) {
  std::vector<RateSample> samples;
  for (const auto& [bytes, rate] : rates) samples.push_back({.bytes = bytes, .bytes_per_s = rate.per_s * factor});
  return samples;
}

}  // namespace

namespace {

// Ops on an idle stream show how fast the host issues them, ops on a busy one how fast the device executes them. The
// slower of the two delays the next op.
Overheads overheads_from(const Statistic& queued, const Statistic& idle, const Statistic& launch) {
  constexpr double kClearly = 1.25;
  Overheads overheads{.op = queued, .launch = launch, .in_record_s = 0};
  if (idle.median > kClearly * queued.median && idle.median > launch.median) overheads.launch = idle;
  return overheads;
}

Overheads overheads_from(const std::vector<TinyOp>& ops) {
  std::vector<double> queued, idle, issue;
  for (const TinyOp& op : ops) {
    queued.push_back(op.queued_s);
    idle.push_back(op.idle_s);
    issue.push_back(op.issue_s);
  }
  return overheads_from(middle_of(queued), middle_of(idle), statistic_of(issue));
}

}  // namespace

void Measurement::add(Measurement&& pass) {
  std::int64_t sequences = 0;
  for (const Record& record : timeline.records) sequences = std::max(sequences, record.sequence + 1);
  for (Record& record : pass.timeline.records) {
    record.sequence += sequences;
    timeline.records.push_back(record);
  }
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(findings.launch_s, pass.findings.launch_s);
  append(findings.wake_call_s, pass.findings.wake_call_s);
  append(findings.input_element_s, pass.findings.input_element_s);
  append(findings.gemms, pass.findings.gemms);
  append(findings.slowdowns, pass.findings.slowdowns);
  append(findings.unrecorded, pass.findings.unrecorded);
  append(findings.graphed, pass.findings.graphed);
  for (const auto& [dtype, products] : pass.findings.small_products) append(findings.small_products[dtype], products);
  plan.repetitions += pass.plan.repetitions;
}

Overheads overheads_of(const Measurement& measurement) {
  const Statistic queued = middle_of(intervals_of(measurement, kQueuedOpLabel));
  const Statistic idle = middle_of(intervals_of(measurement, kTinyOpLabel));
  Overheads overheads = measurement.findings.unrecorded.empty()
                            ? overheads_from(queued, idle, statistic_of(measurement.findings.launch_s))
                            : overheads_from(measurement.findings.unrecorded);
  overheads.in_record_s = std::min(queued.median, middle_of(durations_of(measurement, kQueuedOpLabel)).median);
  return overheads;
}

std::optional<Overheads> graph_overheads_of(const Measurement& measurement) {
  if (measurement.findings.graphed.empty()) return std::nullopt;
  return overheads_from(measurement.findings.graphed);
}

Statistic synchronize_time(const Measurement& measurement) {
  std::vector<Nanoseconds> ended, returned;
  for (const Record& record : measurement.timeline.records) {
    if (record.name == kSynchronizeLabel) ended.push_back(record.end_ns);
    if (record.kind == RecordKind::step && record.step == kSynchronizedStep) returned.push_back(record.start_ns);
  }
  TANDEM_CHECK(ended.size() == returned.size(), "an op that was not waited for");
  std::vector<double> times;
  for (std::size_t i = 0; i < ended.size(); ++i) times.push_back(static_cast<double>(returned[i] - ended[i]) * 1e-9);
  return statistic_of(times);
}

std::optional<Statistic> hand_over_time(const Measurement& measurement) {
  std::vector<double> times;
  const Record* before = nullptr;
  for (const Record& record : measurement.timeline.records) {
    if (record.name != kHandOverLabel) continue;
    if (before != nullptr && record.stream != before->stream) {
      times.push_back(static_cast<double>(std::max<Nanoseconds>(0, record.start_ns - before->end_ns)) * 1e-9);
    }
    before = &record;
  }
  if (times.empty()) return std::nullopt;
  return statistic_of(times);
}

std::vector<MeasuredWakeUp> wake_up_times(const Measurement& measurement) {
  const double launch_s = overheads_of(measurement).launch.median;
  std::vector<Nanoseconds> issued, begun, idle;
  for (const Record& record : measurement.timeline.records) {
    if (record.name == kIdleLabel) idle.push_back(record.start_ns);
    if (record.name == kWakingOpLabel) begun.push_back(record.start_ns);
    if (record.kind == RecordKind::step && record.step == kWakingStep) issued.push_back(record.start_ns);
  }
  TANDEM_CHECK(issued.size() == begun.size(), "an op that was issued in no step");
  if (issued.empty()) return {};
  std::array<std::vector<double>, kIdleOps.size()> idle_s, times;
  std::size_t first_idle = 0;
  for (std::size_t i = 0; i < issued.size(); ++i) {
    const std::size_t which = i % kIdleOps.size();
    idle_s[which].push_back(static_cast<double>(issued[i] - idle.at(first_idle)) * 1e-9);
    first_idle += static_cast<std::size_t>(kIdleOps[which]);
    times[which].push_back(std::max(0.0, static_cast<double>(begun[i] - issued[i]) * 1e-9 - launch_s));
  }
  std::vector<MeasuredWakeUp> found;
  for (std::size_t i = 0; i < times.size(); ++i) found.push_back({median_of(idle_s[i]), statistic_of(times[i])});
  return found;
}

namespace {

// Kernels that were measured by themselves have labels with their name and size, and records with their bytes.
void add_kernels(const Measurement& measurement, double in_record_s, Rates& rates) {
  std::map<std::string, std::string, std::less<>> labels;
  for (const std::string_view name : kMeasuredKernels) {
    for (const std::int64_t bytes : measurement.plan.kernel_bytes) {
      labels[kernel_label(name, bytes)] = name;
    }
  }
  std::map<std::pair<std::string, double>, std::vector<double>> times;
  for (const Record& record : measurement.timeline.records) {
    const auto label = record.kind == RecordKind::op ? labels.find(record.name) : labels.end();
    if (label != labels.end()) times[{label->second, record.bytes}].push_back(duration_s(record));
  }
  for (const auto& [key, all] : times)
    rates.kernels[key.first][key.second] = rate_of(measurement, key.second, all, in_record_s);
}

// What is left of the time of a product that takes hardly longer than an op without work is too uncertain for a rate:
// it has at most that of the fastest longer one of its type.
void limit_short_products(Rates& rates, double in_record_s) {
  std::map<DType, double> fastest;
  const auto is_long = [in_record_s](const auto& product) {
    return product.first.flops() / product.second.per_s >= in_record_s;
  };
  for (const auto& product : rates.gemm) {
    double& most = fastest[product.first.dtype];
    if (is_long(product)) most = std::max(most, product.second.per_s);
  }
  for (auto& product : rates.gemm) {
    const double most = fastest[product.first.dtype];
    if (most > 0 && !is_long(product)) product.second.per_s = std::min(product.second.per_s, most);
  }
}

}  // namespace

Rates rates_of(const Measurement& measurement) {
  const double in_record_s = overheads_of(measurement).in_record_s;
  std::map<std::string, std::vector<double>, std::less<>> durations;
  for (const Record& record : measurement.timeline.records) {
    if (record.kind == RecordKind::op) durations[record.name].push_back(duration_s(record));
  }
  Rates rates;
  for (const GemmShape& shape : measurement.findings.gemms) {
    rates.gemm[shape] = rate_of(measurement, shape.flops(), durations[label_of(shape)], in_record_s);
  }
  limit_short_products(rates, in_record_s);
  for (const DType dtype : measurement.plan.memory_dtypes) {
    const std::int64_t element_bytes = 3 * static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t bytes : measurement.plan.memory_bytes) {
      const auto amount = static_cast<double>(std::max<std::int64_t>(1, bytes / element_bytes) * element_bytes);
      rates.memory[dtype][amount] = rate_of(measurement, amount, durations[memory_label(dtype, bytes)], in_record_s);
    }
  }
  add_kernels(measurement, in_record_s, rates);
  for (const auto& [bytes, times] : copies_of(measurement.timeline.records, kLocalCopies)) {
    rates.copy[bytes] = rate_of(measurement, bytes, times, in_record_s);
  }
  return rates;
}

std::vector<InUseRates> in_use_rates(const Measurement& measurement) {
  std::vector<InUseRates> rates;
  if (!measurement.parts.in_use) return rates;
  const double in_record_s = overheads_of(measurement).in_record_s;
  for (const std::int64_t bytes : measurement.plan.in_use_bytes) {
    if (!is_in_use_measured(bytes, static_cast<std::size_t>(measurement.devices))) continue;
    const auto rate = [&](std::string_view work, std::int64_t op_bytes) {
      const std::vector<double> times = durations_of(measurement, in_use_label(work, bytes));
      return rate_of(measurement, static_cast<double>(op_bytes), times, in_record_s).per_s;
    };
    // As much is packed as unpacked.
    rates.push_back(
        {.devices = measurement.devices,
         .in_use_bytes = static_cast<double>(bytes + measurement.devices * kInUseOperandBytes),
         .memory_bytes_per_s = rate("updating", kInUseUpdateBytes),
         .copy_many_bytes_per_s = 2 / (1 / rate("packing", kInUseCopyBytes) + 1 / rate("unpacking", kInUseCopyBytes))});
  }
  return rates;
}

std::vector<DeviceRates> device_rates(const Measurement& measurement, bool copies_occupy) {
  const Rates rates = rates_of(measurement);
  const Overheads overheads = overheads_of(measurement);
  const double sharing = measurement.sharing();
  std::map<DType, DeviceRates> entries;
  DeviceRates& f32 = entries[DType::f32];
  f32.op_overhead_s = overheads.op.median / sharing;
  f32.launch_overhead_s = overheads.launch.median;
  if (const auto graphs = graph_overheads_of(measurement)) {
    f32.graph_op_overhead_s = graphs->op.median / sharing;
    f32.graph_launch_overhead_s = graphs->launch.median;
  }
  if (!measurement.findings.unrecorded.empty()) {
    std::vector<double> without_s;
    for (const TinyOp& op : measurement.findings.unrecorded) without_s.push_back(op.idle_s);
    const double with_records_s = middle_of(intervals_of(measurement, kTinyOpLabel)).median;
    f32.record_overhead_s = std::max(0.0, with_records_s - middle_of(without_s).median);
  }
  for (const auto& [dtype, products] : measurement.findings.small_products) {
    const double launch_s = overheads_from(products).launch.median;
    if (launch_s > overheads.launch.median) entries[dtype].gemm_launch_overhead_s = launch_s;
  }
  f32.copy = samples_of(rates.copy, copies_occupy ? sharing : 1);
  for (const auto& [name, samples] : rates.kernels) f32.kernels[name] = samples_of(samples, sharing);
  for (const auto& [dtype, memory] : rates.memory) entries[dtype].memory = samples_of(memory, sharing);
  for (const auto& [shape, rate] : rates.gemm) {
    entries[shape.dtype].gemm.push_back({.m = static_cast<double>(shape.m),
                                         .n = static_cast<double>(shape.n),
                                         .k = static_cast<double>(shape.k),
                                         .flops_per_s = rate.per_s * sharing});
  }
  std::vector<DeviceRates> list;
  for (auto& [dtype, entry] : entries) {
    entry.concurrency = measurement.on_each;
    entry.dtype = dtype;
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<LinkFigures> links_of(const Measurement& measurement) {
  const double in_record_s = overheads_of(measurement).in_record_s;
  std::vector<LinkFigures> links;
  for (std::size_t route = 0; route < measurement.parts.routes.size(); ++route) {
    const auto copies = copies_of(measurement.timeline.records, static_cast<int>(route) + 1);
    TANDEM_CHECK(copies.size() > 1, "a link without copies of two sizes");
    std::vector<SizedTime> times;
    for (const auto& [bytes, samples] : copies) {
      times.push_back({.bytes = bytes, .time_s = work_s(median_of(samples), in_record_s)});
    }
    links.push_back({.line = fit_line(times, measurement.hardware.type == DeviceType::gpu ? kEventResolutionS : 0),
                     .least = statistic_of(copies.begin()->second),
                     .most = statistic_of(copies.rbegin()->second)});
  }
  return links;
}

CopyTimes copies_of(const std::vector<Record>& records, int step, std::optional<int> worker) {
  CopyTimes times;
  for (const Record& record : records) {
    if (record.kind != RecordKind::copy || record.step != step || record.worker != worker.value_or(record.worker)) {
      continue;
    }
    times[record.bytes].push_back(duration_s(record));
  }
  return times;
}

// Times calls from the last rank's arrival to the last rank's end, as reports do. Where devices are threads, a rank may
// then wait for a core, which is simulated: what counts is the first rank's end.
std::vector<CollectiveSample> collective_samples(const Measurement& measurement) {
  std::map<std::pair<std::string, double>, std::vector<double>> times;
  const bool are_threads = measurement.hardware.type == DeviceType::cpu && measurement.is_of_one_process;
  for (const CollectiveTiming& call : collective_timings(measurement.timeline.records)) {
    const Nanoseconds took_ns = are_threads ? call.until_first_end_ns : call.duration_ns;
    times[{call.record->name, call.record->bytes}].push_back(static_cast<double>(std::max<Nanoseconds>(1, took_ns)) *
                                                             1e-9);
  }
  std::vector<CollectiveSample> samples;
  for (const auto& [key, all] : times) {
    const Statistic time = statistic_of(all);
    samples.push_back({.operation = key.first,
                       .devices = measurement.devices,
                       .bytes = key.second,
                       .time_s = usual_of(measurement, all),
                       .relative_spread = time.relative_spread});
  }
  return samples;
}

}  // namespace tandem::calibration
