#include "scenarios/calibration/calibrate_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "engine/engine_info.h"
#include "scenarios/calibration/cluster_machine.h"
#include "scenarios/calibration/machine.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

using calibration::GroupShape;
using calibration::MeasuredPath;
using calibration::Measurement;
using calibration::Plan;

// Returns the sizes up to `bytes`, but at least two.
std::vector<std::int64_t> sizes_within(std::vector<std::int64_t> sizes, double bytes) {
  while (sizes.size() > 2 && static_cast<double>(sizes.back()) > bytes) sizes.pop_back();
  return sizes;
}

class ClusterCalibrator {
 public:
  ClusterCalibrator(std::string_view engine, int workers, const CalibrateOptions& options)
      : engine_(engine), workers_(workers), options_(options) {
    TANDEM_REQUIRE(workers >= 2, "a cluster of fewer than two machines");
    const Capabilities capabilities = open(1)->capabilities();
    if (!capabilities.remote_devices) {
      throw UnavailableError(fmt::format("workers of engine '{}' do not reach each other's devices", engine_));
    }
    const auto found = std::find_if(capabilities.hardware.begin(), capabilities.hardware.end(),
                                    [](const Hardware& hardware) { return hardware.type == DeviceType::cpu; });
    TANDEM_CHECK(found != capabilities.hardware.end(), "an engine without a processor");
    hardware_ = *found;
    hardware_.cores = std::max(1, hardware_.cores / workers_of_a_host());
    constexpr int kMostDevices = 8;
    const int cores = static_cast<int>(least_of_all(hardware_.cores));
    devices_ = options.max_devices > 0 ? options.max_devices : std::min(cores, kMostDevices);
    plan_ = calibration::fitting(calibration::plan_for(capabilities, DeviceType::cpu, options.quick, options.dtypes),
                                 least_of_all(hardware_.memory_bytes) / workers_of_a_host() / devices_);
    plan_.copy_bytes = kSizes;
    stages_ = devices_ + 3;
  }

  ClusterCalibration run() {
    calibration::MeasuredCluster cluster{
        .name = fmt::format("{} machines ({} calibration)", workers_, options_.quick ? "quick" : "full"),
        .date = calibration::today(),
        .repetitions = plan_.repetitions,
        .machines = measure_machines(),
        .ports = {}};
    const std::vector<MeasuredPath> paths = measure_paths();
    cluster.ports = calibration::ports_of(workers_, paths);
    const std::int64_t bytes = traffic_bytes(paths);
    show("traffic");
    const std::vector<calibration::TrafficRate> rates = traffic_rates(*open(1), bytes);
    ++done_;
    for (const MeasuredPath& path : paths) limit_bytes_ = std::min(limit_bytes_, limit_of(path));
    std::vector<CollectiveSample> samples = measure_collectives(cluster.machines.front());
    cluster.share_spread = calibration::share_spread(rates);
    cluster.shared = calibration::shared_directions(samples, cluster.ports, rates);
    ClusterCalibration result{.topology = topology_of(cluster), .traffic = {}};
    for (CollectiveSample& sample : samples) result.topology.facts().collectives.push_back(std::move(sample));
    result.topology.facts().measured_with = facts_of(cluster.machines.front());
    result.traffic = checked(rates, bytes, result.topology);
    return result;
  }

 private:
  // Closely spaced, because a slow network allows only the smaller ones.
  inline static const std::vector<std::int64_t> kSizes = {4,         256,     4 << 10, 32 << 10, 128 << 10,
                                                          512 << 10, 1 << 20, 4 << 20, 16 << 20};

  // Returns the time that a call of a collective, or the largest copy, may take.
  double most_s() const { return options_.quick ? 0.15 : 0.5; }
  // A collective moves up to twice its buffer through a port.
  double limit_of(const MeasuredPath& path) const { return path.bytes_per_s * most_s() / 2; }

  // Returns the least value of all machines, because all must measure the same.
  static double least_of_all(double mine) {
    LaunchedJob* job = joined_job();
    if (job == nullptr) return mine;
    double least = mine;
    for (const std::string& other : job->gather(fmt::format("{}", mine))) least = std::min(least, std::stod(other));
    return least;
  }

  // Returns the largest number of workers that share a host. Without a launch, every worker has a host of its own.
  static int workers_of_a_host() {
    const LaunchedJob* job = joined_job();
    if (job == nullptr) return 1;
    std::map<std::string, int> counts;
    for (const std::string& host : job->hosts()) ++counts[host];
    int most = 1;
    for (const auto& [host, count] : counts) most = std::max(most, count);
    return most;
  }

  std::unique_ptr<Engine> open(int devices) const { return open(engine_, devices, options_.topology); }

  std::unique_ptr<Engine> open(std::string_view engine, int devices, std::shared_ptr<const Topology> topology) const {
    EngineOptions options;
    options.workers.clear();
    for (int worker = 0; worker < workers_; ++worker) {
      options.workers.push_back({.job = "worker",
                                 .task = worker,
                                 .topology_worker = worker,
                                 .device_type = DeviceType::cpu,
                                 .device_count = devices});
    }
    options.topology = std::move(topology);
    return open_engine(engine, std::move(options));
  }

  void show(std::string_view stage) const {
    if (options_.progress) options_.progress(stage, done_, stages_);
  }

  // Measures every machine by itself, all at the same time.
  std::vector<Topology> measure_machines() {
    std::map<int, calibration::DeviceMeasurements> measured;  // by worker, for the workers of this process
    for (int n = 1; n <= devices_; ++n, ++done_) {
      const calibration::Parts parts{.work = true, .collectives = n > 1};
      std::map<int, calibration::Findings> findings;
      std::mutex mutex;  // guards findings
      Timeline timeline = open(n)->run([&](Worker& worker) {
        calibration::Findings own;
        calibration::Meeting meeting(worker);
        run_program(worker, plan_, parts, own, [&](std::string_view stage) {
          meeting.wait();
          if (worker.index() == 0) show(stage);
        });
        meeting.wait();
        const std::lock_guard lock(mutex);
        findings.emplace(worker.index(), std::move(own));
      });
      for (auto& [worker, own] : findings) {
        Measurement measurement{.devices = n,
                                .on_each = n,
                                .hardware = hardware_,
                                .plan = plan_,
                                .parts = parts,
                                .timeline = {},
                                .findings = std::move(own)};
        measurement.timeline.engine = timeline.engine;
        measurement.timeline.settings = timeline.settings;
        keep_own(measurement, timeline.records, worker);
        calibration::DeviceMeasurements& runs = measured[worker];
        runs.type = DeviceType::cpu;
        runs.runs.push_back(std::move(measurement));
      }
    }
    return gathered(measured);
  }

  // Keeps the records of one worker and, for collectives, only those among its own devices.
  static void keep_own(Measurement& measurement, const std::vector<Record>& records, int worker) {
    std::map<std::int64_t, std::set<int>> workers;  // that take part in a collective, by its number
    for (const Record& record : records) {
      if (record.kind == RecordKind::collective) workers[record.sequence].insert(record.worker);
    }
    for (const Record& record : records) {
      if (record.worker != worker) continue;
      if (record.kind == RecordKind::collective && workers[record.sequence].size() > 1) continue;
      measurement.timeline.records.push_back(record);
    }
  }

  // Gathers the measurements of all processes, which are exchanged as text.
  std::vector<Topology> gathered(const std::map<int, calibration::DeviceMeasurements>& measured) const {
    std::vector<std::string> texts;
    for (const auto& [worker, measurements] : measured) {
      const calibration::MeasuredMachine machine{
          .name = hardware_.name, .date = calibration::today(), .host = measurements, .devices = {}};
      std::ostringstream text;
      write_topology_yaml(topology_of(machine), text);
      texts.push_back(text.str());
    }
    if (LaunchedJob* job = joined_job()) {
      TANDEM_CHECK(texts.size() == 1, "a process of a launch with another number of workers than one");
      texts = job->gather(texts.front());
    }
    std::vector<Topology> machines;
    for (const std::string& text : texts) machines.push_back(parse_topology_yaml(text, "a machine's calibration"));
    return machines;
  }

  std::vector<MeasuredPath> measure_paths() {
    const std::vector<calibration::Path> paths = calibration::paths_between(workers_);
    show("links");
    const Timeline timeline =
        open(1)->run([&](Worker& worker) { calibration::measure_paths(worker, plan_, paths, most_s()); });
    ++done_;
    return calibration::measured_paths(timeline.records, paths);
  }

  // The groups are on two machines, then twice as many, and all, with one device of each, and all devices of all
  // machines.
  std::vector<GroupShape> shapes() const {
    std::vector<GroupShape> shapes;
    for (int workers = 2; workers < workers_; workers *= 2) shapes.push_back({.workers = workers});
    shapes.push_back({.workers = workers_});
    if (devices_ > 1) shapes.push_back({.workers = workers_, .devices = devices_});
    return shapes;
  }

  std::vector<CollectiveSample> measure_collectives(const Topology& first) {
    std::vector<CollectiveSample> samples = first.facts().collectives;
    Plan plan = plan_;
    plan.collective_bytes = sizes_within(kSizes, limit_bytes_);
    plan.once_bytes = std::llround(limit_bytes_ / 10);
    show("collectives");
    for (const GroupShape& shape : shapes()) {
      Timeline timeline =
          open(devices_)->run([&](Worker& worker) { calibration::measure_collectives_between(worker, plan, shape); });
      for (CollectiveSample& sample : calibration::samples_of(std::move(timeline.records), shape)) {
        samples.push_back(std::move(sample));
      }
      conditions_ = std::move(timeline.settings);
    }
    ++done_;
    return samples;
  }

  // Returns the largest size that was copied on every path.
  std::int64_t traffic_bytes(const std::vector<MeasuredPath>& paths) const {
    std::int64_t bytes = plan_.copy_bytes.back();
    for (const MeasuredPath& path : paths) bytes = std::min(bytes, path.largest_bytes);
    return bytes;
  }

  std::vector<calibration::TrafficRate> traffic_rates(Engine& engine, std::int64_t bytes) const {
    const std::vector<calibration::Traffic> traffic = calibration::traffic_between(workers_);
    const Timeline timeline =
        engine.run([&](Worker& worker) { calibration::measure_traffic(worker, plan_, traffic, bytes); });
    return calibration::traffic_rates(timeline.records, traffic);
  }

  // Shows the measured rates beside the rates simulated on the topology.
  std::vector<TrafficCheck> checked(const std::vector<calibration::TrafficRate>& measured, std::int64_t bytes,
                                    const Topology& topology) const {
    std::vector<TrafficCheck> checks;
    for (const calibration::TrafficRate& rate : measured) checks.push_back({rate.what, rate.bytes_per_s, 0});
    if (!model_engine().built()) return checks;
    const auto simulated =
        traffic_rates(*open(model_engine().name, 1, std::make_shared<const Topology>(topology)), bytes);
    for (std::size_t i = 0; i < checks.size(); ++i) checks[i].simulated_bytes_per_s = simulated[i].bytes_per_s;
    return checks;
  }

  std::map<std::string, std::string> facts_of(const Topology& first) const {
    std::map<std::string, std::string> facts = first.facts().measured_with;
    for (const auto& [name, value] : conditions_) facts[name] = value;
    facts["devices_of_a_machine"] = std::to_string(devices_);
    if (const LaunchedJob* job = joined_job()) {
      facts["hosts"] = fmt::format("{}", fmt::join(job->hosts(), " "));
    }
    return facts;
  }

  const std::string engine_;
  const int workers_;
  const CalibrateOptions& options_;
  Hardware hardware_;
  int devices_ = 1;
  Plan plan_;
  int done_ = 0, stages_ = 0;
  double limit_bytes_ = 1e18;
  std::map<std::string, std::string> conditions_;  // of the collectives
};

}  // namespace

ClusterCalibration calibrate_cluster(std::string_view engine, int workers, const CalibrateOptions& options) {
  return ClusterCalibrator(engine, workers, options).run();
}

}  // namespace tandem
