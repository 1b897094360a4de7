#include "scenarios/estimates/run_size.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>

#include "engine/engine.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/workloads/mlp_layers.h"
#include "topologies/base/machine_memory.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

// Resident memory of `tandem run` (/usr/bin/time), 2026-11-24. A simulated device and a record: workload layers_small,
// strategy mirrored, on 500 to 8,000 replicas of one hgx-h100, which leave 45 records in each of 3 and 6 steps; most of
// a device's is its task's stack. A represented device: BERT-large on a fat tree of 262,144 and 1,048,576 GPUs. Beside
// them: BERT-large on 256 GPUs, 4 steps, every worker simulated, took 259 MB more than the program with its libraries.
constexpr double kBytesOfADevice = 1.8e3;
constexpr double kBytesOfASimulatedDevice = 15e3;
constexpr double kBytesOfARecord = 220;

// Address space of the same (VmPeak), 2026-11-23: a trace of one rank on 400 to 1,600 devices. A task's stack is a
// mebibyte of it (engine/sim/base/simgrid_compat.h).
constexpr double kAddressesOfASimulatedDevice = 1.2e6;

// A task's stack and the guard beside it. More areas than the system allows end the simulation in SimGrid.
constexpr double kAreasOfATask = 2;
constexpr double kAreasOfLibraries = 2000;

// The same of a device that is this machine's: digits on 64 to 1,000 replicas of engine cpu.
constexpr double kBytesOfARealDevice = 6.3e6;

// Where some workers of a kind represent others, the first and the last run, and a witness between them.
std::int64_t simulated_workers(const Job& job) {
  std::map<int, std::size_t> kinds;
  for (const int kind : job.alike) ++kinds[kind];
  const bool saves_work = std::ranges::any_of(kinds, [](const auto& kind) { return kind.second > kFewAlike; });
  if (!saves_work) return job.workers;
  std::int64_t workers = 0;
  for (const auto& [kind, members] : kinds) {
    workers += static_cast<std::int64_t>(std::min<std::size_t>(members, members < kManyAlike ? 2 : 3));
  }
  return workers;
}

double bytes_of_weights(const MlpSettings& mlp) {
  return static_cast<double>(layers_of(mlp).model.parameters()) * static_cast<double>(size_of(DType::f32));
}

std::string values_text(const RunSize& size) {
  if (size.value_bytes == 0) return {};
  return fmt::format(" with {} of values", format_quantity(size.value_bytes, Dimension::bytes));
}

}  // namespace

double bytes_of_records(double records) {
  return kBytesOfARecord * records;
}

double RunSize::bytes() const {
  return kBytesOfADevice * static_cast<double>(devices) + kBytesOfASimulatedDevice * static_cast<double>(simulated) +
         bytes_of_records(records) + value_bytes;
}

double RunSize::addresses() const {
  return kAddressesOfASimulatedDevice * static_cast<double>(simulated) + bytes();
}

double RunSize::areas() const {
  return kAreasOfATask * static_cast<double>(simulated);
}

RunSize size_of(const Job& job, double records_of_a_step, Representatives representatives) {
  const Scenario& scenario = job.scenario;
  const std::int64_t each = scenario.devices.per_worker / (representatives.devices ? job.alike_devices : 1);
  // If workers share a machine, all of them run.
  const bool share_machines = scenario.topology && job.workers > scenario.topology->worker_count();
  RunSize size{.devices = job.devices};
  size.simulated = (representatives.workers && !share_machines ? simulated_workers(job) : job.workers) * each;
  size.records = static_cast<double>(size.simulated) * scenario.steps * records_of_a_step;
  if (scenario.engine.values == ValueMode::real) {
    size.value_bytes = static_cast<double>(size.simulated) * tensor_bytes_of_device(job) + tensor_bytes_of_servers(job);
  }
  return size;
}

// Resident memory of engine sim with `values: real` (/usr/bin/time), 2026-11-24: resnet50 (f32, batch 64) on 1, 2 and 4
// GPUs took 1.04, 1.27 and 1.66 GB, and is estimated to take 0.95, 1.27 and 1.79 GB.
double tensor_bytes_of_device(const Job& job) {
  if (job.mlp != nullptr && !job.mesh) return 2 * bytes_of_weights(*job.mlp);
  const auto need = memory_need(job);
  if (!need) return 0;
  const bool is_computed = job.layers->learning.has_value();  // and keeps what a device would keep
  if (is_computed) return static_cast<double>(need->total());
  const auto step = memory_of_step(job);
  const std::int64_t workspace = step ? largest_workspace(*step) : need->workspace;
  return static_cast<double>(need->total() - need->activations - need->optimizer - need->workspace + workspace);
}

double tensor_bytes_of_servers(const Job& job) {
  if (job.servers == 0) return 0;
  const bool accumulates = job.scenario.strategy.updates == VariableUpdates::synchronous;
  const double copies = accumulates ? 2 : 1;
  if (job.mlp != nullptr) return copies * bytes_of_weights(*job.mlp);
  if (job.layers == nullptr) return 0;
  return copies * static_cast<double>(job.layers->model.parameters()) *
         static_cast<double>(size_of(job.layers->parameter_type()));
}

std::string size_problem(const RunSize& size, double available_bytes) {
  if (size.bytes() <= available_bytes) return {};
  const auto text = [](double bytes) { return format_quantity(bytes, Dimension::bytes); };
  const std::string records = size.records > 0 ? fmt::format(" and their {:.3g} records", size.records) : "";
  const std::string less = !size.less.empty() ? size.less
                                              : fmt::format("fewer devices or steps, or engine: {{{}}}, need less",
                                                            size.value_bytes > 0 ? "values: none" : "records: steps");
  return fmt::format(
      "{} devices, {} of them simulated{}{}, need about {} of this machine's memory; {} is available ({})",
      size.devices, size.simulated, values_text(size), records, text(size.bytes()), text(available_bytes), less);
}

std::string address_problem(const RunSize& size, double available_addresses) {
  if (size.addresses() <= available_addresses) return {};
  return fmt::format(
      "{} devices, {} of them simulated{}, need about {} of address space; `ulimit -v` leaves {} (a higher limit, {}"
      "fewer devices)",
      size.devices, size.simulated, values_text(size), format_quantity(size.addresses(), Dimension::bytes),
      format_quantity(available_addresses, Dimension::bytes), size.value_bytes > 0 ? "values: none, or " : "or ");
}

std::string area_problem(const RunSize& size, double available_areas) {
  if (size.areas() <= available_areas) return {};
  return fmt::format(
      "{} devices, {} of them simulated, need about {:.0f} areas of memory for their stacks; {:.0f} are available (a "
      "larger vm.max_map_count, or fewer devices)",
      size.devices, size.simulated, size.areas(), available_areas);
}

std::string host_size_problem(std::int64_t devices, double device_bytes, double available_bytes,
                              const std::string& less) {
  const double bytes = static_cast<double>(devices) * std::max(device_bytes, kBytesOfARealDevice);
  if (bytes <= available_bytes) return {};
  return fmt::format("{} devices need about {} of this machine's memory; {} is available ({})", devices,
                     format_quantity(bytes, Dimension::bytes), format_quantity(available_bytes, Dimension::bytes),
                     less);
}

std::string thread_problem(std::int64_t devices, std::int64_t available_threads) {
  if (devices <= available_threads) return {};
  return fmt::format("{} devices need at least as many threads; this system allows {} (simulations need none)", devices,
                     available_threads);
}

std::string simulation_problem_here(const RunSize& size, double memory_share) {
  std::string problem;
  if (const auto addresses = available_addresses()) problem = address_problem(size, *addresses);
  if (const auto areas = available_areas(); problem.empty() && areas) problem = area_problem(size, *areas);
  const auto bytes = available_memory_bytes();
  return problem.empty() && bytes ? size_problem(size, *bytes * memory_share) : problem;
}

std::string host_problem_here(std::int64_t devices, double device_bytes, double memory_share, const std::string& less) {
  std::string problem;
  if (const auto threads = available_threads()) problem = thread_problem(devices, *threads);
  const auto bytes = available_memory_bytes();
  return problem.empty() && bytes ? host_size_problem(devices, device_bytes, *bytes * memory_share, less) : problem;
}

std::optional<double> available_areas() {
  const auto most = number_in("/proc/sys/vm/max_map_count");
  return most ? std::optional(std::max(0.0, *most - kAreasOfLibraries)) : std::nullopt;
}

std::optional<std::int64_t> available_threads() {
  std::optional<double> available;
  const auto limit = [&available](std::optional<double> most) {
    if (most) available = std::min(available.value_or(*most), *most);
  };
  for (const char* file : {"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max", "/sys/fs/cgroup/pids.max"}) {
    limit(number_in(file));
  }
  rlimit user{};
  if (getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY) limit(static_cast<double>(user.rlim_cur));
  if (!available) return std::nullopt;
  return static_cast<std::int64_t>(*available);
}

}  // namespace tandem
