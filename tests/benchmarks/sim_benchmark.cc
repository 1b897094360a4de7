// What simulating costs: the whole of Engine::run, with its platform, for collectives at scale.
//
// Counters: transfers_per_s (of CPU time), peak_rss_mb of the process so far (run one benchmark alone,
// --benchmark_filter=..., to attribute it), and what was simulated.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/nccl/surveyor.h"
#include "engine/sim/collectives/steps/step_planner.h"
#include "tests/benchmarks/exact_counters.h"
#include "tests/engine/sim_machines.h"

namespace tandem {
namespace {

constexpr int kGpusPerWorker = 8;
constexpr std::int64_t kBytes = 1'000'000'000;

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Machines of eight GPUs behind one NVSwitch, a NIC for each GPU, rails into one non-blocking switch.
std::shared_ptr<const Topology> pod(int gpus) {
  auto topology = std::make_shared<Topology>("pod");
  DeviceModel model = device_model("GPU", 1, 2);
  model.architecture = "sm_90";
  model.boost_clock_hz = vendor(1.98e9);
  const auto gpu = std::make_shared<const DeviceModel>(std::move(model));
  const auto cpu = std::make_shared<const DeviceModel>(device_model("CPU", 32, 0));
  const auto nvlink = link_model(450e9, 1e-6, LinkKind::nvlink);
  const auto pcie = link_model(55e9, 0.5e-6, LinkKind::pcie);
  const auto network = link_model(50e9, 1e-6, LinkKind::network);
  const NodeIndex middle = topology->add_node({.name = "switch", .kind = NodeKind::network_switch});
  for (int worker = 0; worker < (gpus + kGpusPerWorker - 1) / kGpusPerWorker; ++worker) {
    const std::string prefix = "w" + std::to_string(worker) + ".";
    const NodeIndex host =
        topology->add_node({.name = prefix + "cpu0", .kind = NodeKind::cpu, .worker = worker, .device = cpu});
    const NodeIndex nvswitch =
        topology->add_node({.name = prefix + "nvswitch", .kind = NodeKind::nvswitch, .worker = worker});
    for (int i = 0; i < std::min(gpus, kGpusPerWorker); ++i) {
      const auto named = [&](const char* what) { return prefix + what + std::to_string(i); };
      const NodeIndex device =
          topology->add_node({.name = named("gpu"), .kind = NodeKind::gpu, .worker = worker, .device = gpu});
      const NodeIndex nic = topology->add_node({.name = named("nic"), .kind = NodeKind::nic, .worker = worker});
      topology->add_link(device, nvswitch, nvlink);
      topology->add_link(device, nic, pcie);
      topology->add_link(nic, middle, network);
      topology->add_link(host, nic, pcie);
    }
  }
  return topology;
}

// Returns how many transfers `message` simulates in an all_reduce over all GPUs.
double messages_of_all_reduce(const Topology& topology, int workers) {
  std::vector<NodeIndex> gpus;
  for (int worker = 0; worker < workers; ++worker) {
    for (const NodeIndex gpu : topology.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
  }
  Router router(topology);
  const sim::nccl::Surveyor surveyor(topology, router);
  const sim::nccl::Communicator group(surveyor.survey(gpus), {});
  const sim::nccl::Call call{CollectiveKind::all_reduce, static_cast<double>(kBytes), false};
  const sim::steps::StepPlan steps = sim::steps::plan_steps(group, call, 0, group.plan(call));
  return static_cast<double>(steps.graph->transfers().size());
}

void run_all_reduce(benchmark::State& state, CollectiveFidelity fidelity) {
  const int gpus = static_cast<int>(state.range(0));
  const int workers = std::max(1, gpus / kGpusPerWorker);
  const auto topology = pod(gpus);
  const double transfers = fidelity == CollectiveFidelity::message ? messages_of_all_reduce(*topology, workers) : gpus;
  EngineOptions options = gpu_workers(topology, workers, gpus / workers);
  options.collectives = fidelity;
  const std::vector<DeviceId> ids = gpus_of(workers, gpus / workers);
  const auto engine = open_sim_engine(std::move(options));
  Timeline timeline;
  const std::int64_t allocations = heap_allocations();
  for (auto _ : state) {
    timeline = engine->run([&](Worker& worker) {
      Communicator& communicator = worker.communicator(ids);
      std::vector<Tensor> buffers;
      std::vector<Stream*> streams;
      for (Device* device : communicator.local_devices()) {
        buffers.push_back(device->allocate(DType::u8, {kBytes}));
        streams.push_back(&device->stream(kCommunicationStream));
      }
      communicator.all_reduce(buffers, Reduction::sum, streams);
    });
  }
  count_allocations(state, allocations);
  count_simulation(state, timeline);
  set_exact(state, "transfers", transfers);
  state.counters["transfers_per_s"] =
      benchmark::Counter(transfers * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["peak_rss_mb"] = peak_rss_mb();
}

void fluid_all_reduce(benchmark::State& state) {
  run_all_reduce(state, CollectiveFidelity::fluid);
}
void message_all_reduce(benchmark::State& state) {
  run_all_reduce(state, CollectiveFidelity::message);
}

// A platform and nothing on it: what the two above pay before their first transfer.
void empty_run(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const auto engine = open_sim_engine(gpu_workers(pod(gpus), gpus / kGpusPerWorker, kGpusPerWorker));
  const std::int64_t allocations = heap_allocations();
  for (auto _ : state) engine->run([](Worker&) {});
  count_allocations(state, allocations);
  state.counters["peak_rss_mb"] = peak_rss_mb();
}

// One stream of short ops: the cost of an operation.
void ops_in_a_stream(benchmark::State& state) {
  constexpr int kOps = 100'000;
  const auto engine = open_sim_engine(gpu_workers(pod(8), 1, 8));
  Timeline timeline;
  const std::int64_t allocations = heap_allocations();
  for (auto _ : state) {
    timeline = engine->run([](Worker& worker) {
      Stream& stream = worker.devices()[0]->compute_stream();
      for (int i = 0; i < kOps; ++i) stream.launch(op::host_function("op", {1e6, 0, DType::f32}, [] {}));
      stream.synchronize();
    });
  }
  count_allocations(state, allocations);
  count_simulation(state, timeline);
  state.counters["ops_per_s"] =
      benchmark::Counter(kOps * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// NCCL's plan of a call that it has not planned before, on one machine.
void nccl_plan(benchmark::State& state) {
  const auto topology = pod(8);
  Router router(*topology);
  const sim::nccl::Surveyor surveyor(*topology, router);
  const sim::nccl::Communicator group(surveyor.survey(topology->nodes_of(0, NodeKind::gpu)), {});
  double bytes = 0;
  const std::int64_t allocations = heap_allocations();
  for (auto _ : state) benchmark::DoNotOptimize(group.plan({CollectiveKind::all_reduce, bytes += 4096}));
  count_allocations(state, allocations);
}

BENCHMARK(nccl_plan)->Unit(benchmark::kMicrosecond);
BENCHMARK(empty_run)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(fluid_all_reduce)->Arg(8)->Arg(256)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(message_all_reduce)->Arg(8)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK(ops_in_a_stream)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
