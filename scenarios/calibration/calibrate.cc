#include "scenarios/calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/calibration/machine.h"
#include "scenarios/calibration/pace.h"

namespace tandem {
namespace {

using calibration::DeviceMeasurements;
using calibration::Measurement;
using calibration::Plan;
using calibration::Route;

const Hardware* find_hardware(const Capabilities& capabilities, DeviceType type) {
  for (const Hardware& hardware : capabilities.hardware) {
    if (hardware.type == type) return &hardware;
  }
  return nullptr;
}

// Returns the routes between the host and each place, unless the host is the place, and between the places.
std::vector<Route> routes_between(DeviceType type, int places) {
  std::vector<Route> routes;
  for (int place = 0; place < places && type != DeviceType::cpu; ++place) {
    routes.push_back({.from = calibration::kHost, .to = place});
    routes.push_back({.from = place, .to = calibration::kHost});
  }
  for (int from = 0; from < places; ++from) {
    for (int to = 0; to < places; ++to) {
      if (from != to) routes.push_back({.from = from, .to = to});
    }
  }
  return routes;
}

// If places have unequal numbers of devices, keeps the records of the first place, which has the most.
void keep_fullest_place(Measurement& measurement, int places) {
  if (measurement.devices % places == 0) return;
  std::vector<bool> counts;
  for (const TimelineDevice& device : measurement.timeline.devices) {
    const auto id = DeviceId::parse(device.name, {});
    counts.push_back(id && id->index % places == 0);
  }
  std::erase_if(measurement.timeline.records, [&](const Record& record) {
    const bool is_local =
        record.kind == RecordKind::op || (record.kind == RecordKind::copy && record.step == calibration::kLocalCopies);
    return is_local && !counts.at(static_cast<std::size_t>(record.device));
  });
}

class Calibration {
 public:
  Calibration(std::string_view engine, const CalibrateOptions& options) : engine_(engine), options_(options) {
    capabilities_ = open(DeviceType::cpu, 1)->capabilities();
    const bool has_gpus = find_hardware(capabilities_, DeviceType::gpu) != nullptr;
    type_ = options.device_type.value_or(has_gpus ? DeviceType::gpu : DeviceType::cpu);
    if (find_hardware(capabilities_, type_) == nullptr) {
      throw UnavailableError(fmt::format("engine '{}' has no {} on this machine", engine_, name_of(type_)));
    }
    places_ = calibration::places_of(capabilities_, type_);
    devices_ = options.max_devices > 0 ? options.max_devices : default_devices();
    runs_ = passes() * static_cast<int>(numbers_of_devices().size()) + (type_ == DeviceType::cpu ? 0 : 1);
  }

  Topology run() {
    const Hardware& hardware = *find_hardware(capabilities_, type_);
    calibration::MeasuredMachine machine{
        .name = fmt::format("{} ({} calibration)", hardware.name, options_.quick ? "quick" : "full"),
        .date = calibration::today(),
        .host = {},
        .devices = {}};
    DeviceMeasurements measured = measure_devices();
    if (type_ == DeviceType::cpu) {
      machine.host = std::move(measured);
    } else {
      machine.devices = std::move(measured);
      machine.host = measure_host();
    }
    Topology topology = topology_of(machine);
    if (!paces_.empty()) set_pace(topology, usual_pace());
    return topology;
  }

 private:
  int default_devices() const {
    constexpr int kMost = 8;
    return std::clamp((type_ == DeviceType::cpu ? kDevicesOnCore : 1) * most_at_a_time(), 1, kMost);
  }
  int most_at_a_time() const { return places_ * find_hardware(capabilities_, type_)->cores; }

  std::unique_ptr<Engine> open(DeviceType type, int devices, RecordLevel records = RecordLevel::all,
                               bool graphs = false) const {
    EngineOptions options;
    options.records = records;
    options.graphs = graphs;
    options.workers = {WorkerSpec{.job = "localhost", .device_type = type, .device_count = devices}};
    options.topology = options_.topology;
    return open_engine(engine_, std::move(options));
  }

  // Returns the numbers of devices to measure. Of those that share cores, some are enough.
  std::vector<int> numbers_of_devices() const {
    std::vector<int> numbers;
    const int undivided = type_ == DeviceType::cpu ? most_at_a_time() : devices_;
    for (int n = 1; n <= std::min(undivided, devices_); ++n) numbers.push_back(n);
    for (int n = 2 * undivided; n < devices_; n *= 2) numbers.push_back(n);
    if (devices_ > undivided) numbers.push_back(devices_);
    return numbers;
  }

  // Rates are measured when every place has the same number of devices, and in the last run. CPU devices that share
  // cores take turns, so their ops take the time that they do with as many devices as cores.
  DeviceMeasurements measure_devices() {
    const int used = std::min(places_, devices_);
    const int most = type_ == DeviceType::cpu ? std::min(most_at_a_time(), devices_) : devices_;
    DeviceMeasurements measured{.type = type_, .places = used, .runs = {}};
    const std::vector<int> numbers = numbers_of_devices();
    for (int i = 0; i < passes() * static_cast<int>(numbers.size()); ++i) {
      const int n = numbers[static_cast<std::size_t>(i) % numbers.size()];
      calibration::Parts parts{.work = n <= most && (n % places_ == 0 || n == most),
                               .concurrent_copies = type_ == DeviceType::gpu && n == used,
                               .routes = n == used ? routes_between(type_, used) : std::vector<Route>{},
                               .collectives = n > 1,
                               .in_use = type_ == DeviceType::cpu,
                               .slowdown = type_ == DeviceType::gpu && n > 1 && n == used};
      if (!parts.work && !parts.collectives && !parts.in_use) continue;
      Plan plan = calibration::plan_for(capabilities_, type_, options_.quick, options_.dtypes);
      if (options_.warm_up_s && type_ == DeviceType::gpu) plan.warm_up_s = *options_.warm_up_s;
      if (!measured.runs.empty()) plan.warm_up_s = std::min(plan.warm_up_s, kLaterWarmUpS);
      plan.repetitions = (plan.repetitions + passes() - 1) / passes();
      note_pace();
      add_pass(measured.runs, measure(type_, n, plan, std::move(parts)));
    }
    note_pace();
    return measured;
  }

  // A CPU's pace may change for some seconds, so that each number of devices is measured in several passes.
  int passes() const { return type_ != DeviceType::cpu ? 1 : options_.quick ? 3 : 5; }

  // Adds the measurement to the one of as many devices, if there is one.
  static void add_pass(std::vector<Measurement>& runs, Measurement&& pass) {
    const auto known =
        std::find_if(runs.begin(), runs.end(), [&](const Measurement& run) { return run.devices == pass.devices; });
    if (known == runs.end()) {
      runs.push_back(std::move(pass));
    } else {
      known->add(std::move(pass));
    }
  }

  void note_pace() {
    if (type_ != DeviceType::cpu || capabilities_.deterministic) return;
    paces_.push_back(measure_pace(engine_, devices_));
  }

  MachinePace usual_pace() const {
    std::vector<double> products, exchanges;
    for (const MachinePace& pace : paces_) {
      products.push_back(pace.product_s);
      exchanges.push_back(pace.exchange_s);
    }
    return {.product_s = calibration::lower_quartile_of(std::move(products)),
            .exchange_s = calibration::lower_quartile_of(std::move(exchanges))};
  }

  // Measures one core, for the work that strategies give to the host.
  DeviceMeasurements measure_host() {
    const Plan plan = calibration::plan_for(capabilities_, DeviceType::cpu, true, {DType::f32});
    return {.type = DeviceType::cpu,
            .places = 1,
            .runs = {measure(DeviceType::cpu, 1, plan, {.work = true, .concurrent_copies = false, .routes = {}})}};
  }

  Measurement measure(DeviceType type, int devices, const Plan& plan, calibration::Parts parts) {
    const Hardware& hardware = *find_hardware(capabilities_, type);
    const int places = calibration::places_of(capabilities_, type);
    Measurement measurement{.devices = devices,
                            .on_each = (devices + places - 1) / places,
                            .is_of_one_process = true,
                            .hardware = hardware,
                            .parts = std::move(parts)};
    measurement.plan = fitting(plan, hardware.memory_bytes / measurement.on_each);
    std::string doing;
    measurement.plan.on_round = [&] {
      if (options_.progress) options_.progress(doing, done_, runs_);
    };
    measurement.timeline = open(type, devices)->run([&](Worker& worker) {
      run_program(worker, measurement.plan, measurement.parts, measurement.findings, [&](std::string_view stage) {
        doing = fmt::format("{}, {} of {} devices", stage, devices, devices_);
        measurement.plan.begin_round();
      });
    });
    measurement.plan.on_round = nullptr;
    const std::vector<GpuUse>& uses = measurement.timeline.gpus;
    if (options_.gpus != nullptr) options_.gpus->insert(options_.gpus->end(), uses.begin(), uses.end());
    if (type == DeviceType::gpu && measurement.parts.work) measure_without_records(measurement);
    ++done_;
    keep_fullest_place(measurement, places);
    return measurement;
  }

  // Records take time themselves, which the simulator should not predict.
  void measure_without_records(Measurement& measurement) const {
    const auto measure_into = [&](std::vector<calibration::TinyOp>& ops, bool graphs) {
      open(DeviceType::gpu, measurement.devices, RecordLevel::steps, graphs)->run([&](Worker& worker) {
        run_unrecorded_program(worker, measurement.plan, ops);
      });
    };
    measure_into(measurement.findings.unrecorded, false);
    open(DeviceType::gpu, measurement.devices, RecordLevel::steps, false)->run([&](Worker& worker) {
      run_products_program(worker, measurement.plan, measurement.findings.small_products);
    });
    if (engine_info(engine_).graphs) measure_into(measurement.findings.graphed, true);
  }

  static constexpr double kLaterWarmUpS = 1;
  static constexpr int kDevicesOnCore = 4;  // to be measured unless stated otherwise

  const std::string engine_;
  const CalibrateOptions& options_;
  Capabilities capabilities_;
  DeviceType type_ = DeviceType::cpu;
  int places_ = 1;
  int devices_ = 1;
  std::vector<MachinePace> paces_;
  int done_ = 0;
  int runs_ = 1;
};

}  // namespace

Topology calibrate(std::string_view engine, const CalibrateOptions& options) {
  return Calibration(engine, options).run();
}

std::shared_ptr<const Topology> machine_topology(std::string_view engine, const CalibrateOptions& options) {
  CalibrateOptions quick = options;
  quick.quick = true;
  return std::make_shared<const Topology>(calibrate(engine, quick));
}

}  // namespace tandem
