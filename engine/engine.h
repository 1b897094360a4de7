// The contract between strategies and machines. An Engine is a world in which strategy code runs: it calls one
// program on every worker of a cluster and returns the timing records. The program sees a Worker and cannot tell
// what kind of world it is in; what a world lacks is a field of its Capabilities, read before the run.
//
// Threads: drive an Engine from one thread. One Engine::run at a time in a process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/timeline.h"
#include "engine/worker.h"
#include "topologies/topology.h"

namespace tandem {

struct Faults;  // engine/faults/faults.h

// A processor or a GPU of a machine, which logical devices share.
struct Hardware {
  DeviceType type = DeviceType::cpu;
  std::string name;         // "NVIDIA H200"
  int cores = 1;            // how many logical devices can use it at full rate together; GPU: 1
  double memory_bytes = 0;  // 0: not known
  // The places, among the hardware of this type, of what this one reaches without the host: over NVLink, or by CUDA's
  // peer access.
  std::vector<int> links{};
};

struct Capabilities {
  std::string engine;                        // "cpu"
  bool carries_values = true;                // tensors hold data
  bool deterministic = false;                // equal inputs give equal times
  bool host_functions_reach_devices = true;  // kernel::HostFunction may touch device memory
  bool remote_devices = true;                // Worker::device() and Stream::copy() reach other workers
  bool shared_objects = true;                // SharedState::object(): all workers are in one process
  bool remote_functions = true;              // kernel::HostFunction on devices of other workers
  bool selection_kernels = true;             // compute devices execute kernel::Largest and kernel::TopK
  std::vector<DType> dtypes;                 // of tensors
  std::vector<DType> gemm_dtypes;
  std::vector<DeviceType> device_types;
  int max_devices_per_worker = 0;  // 0: no limit
  // Describes the first worker's machine. Logical device i of a type is on the (i mod their number)-th of that type.
  std::vector<Hardware> hardware{};
};

enum class ValueMode : std::uint8_t { real, none };
enum class CollectiveFidelity : std::uint8_t { fluid, message };

// As many workers that are alike are simulated quickly, and each then has its own figures: none represents others,
// unless EngineOptions::few_alike says so.
inline constexpr std::size_t kFewAlike = 4;
// A class of so many alike workers has a witness in its middle, which is simulated beside the first and the last. It
// costs as much as the worker that it checks, however many that worker represents: 0.1 s of BERT-large's 0.3 s on 128
// machines, and of 0.75 s on 4,096; 0.15 s of 1.9 s on 16,384 (`tandem run`, CPU time, 2026-11-24). Here it is some 3
// %.
inline constexpr std::size_t kManyAlike = 65'536;

struct EngineOptions {
  std::vector<WorkerSpec> workers = {WorkerSpec{}};
  std::shared_ptr<const Topology> topology;       // sim: required. Real engines: unused
  std::optional<ValueMode> values;                // empty: what the engine prefers (real engines: real; sim: none)
  std::optional<CollectiveFidelity> collectives;  // engines that model collectives only
  // NCCL's variables, by name, for the collectives of simulated GPUs: NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS,
  // NCCL_MAX_NCHANNELS, NCCL_NVLS_ENABLE, NCCL_COLLNET_ENABLE; its "version" ("2.27"; default: the newest known); and
  // "devices_per_process", how many GPUs each process of the job drives (1). Engines that model collectives only.
  std::map<std::string, std::string> nccl{};
  // How many devices wait for one another in every step, and how much the time of equal work differs among them: its
  // standard deviation as a share of the mean (empty: the model's own). The kernels of simulated GPUs take as long as
  // the slowest device is expected to take. Engines that model collectives only; unused by others.
  int devices_in_step = 1;
  std::optional<double> work_spread;
  // Permutes the order of tasks that could run at one instant, and of work that ends at one. Equal seeds give equal
  // runs; empty: the engine's own order. Engines with EngineInfo::seeded_schedule only.
  std::optional<std::uint64_t> schedule_seed;
  // By worker: workers with equal numbers are declared to do the same. Once the engine has seen that their machines and
  // their communication are equal as well, it may run one of them for all and another as a witness that must do the
  // same; run() may then end with RunAgain. Empty: every worker runs. Engines with EngineInfo::symmetry only; runs that
  // carry values or have a seed run every worker.
  std::vector<int> alike{};
  std::size_t few_alike = kFewAlike;  // where so many or fewer are alike, each of them runs
  bool has_witnesses = true;          // with `alike`; else what is declared about workers is believed
  // Work that a device repeats (Device::repeat()) may take the times that it took before, although something that
  // begins meanwhile would change them a little. Engines with EngineInfo::symmetry only; not in runs that carry values
  // or have a seed, with collectives in messages, or with fewer records than all.
  bool merges_repeats = false;
  // So many consecutive devices of every worker, from a multiple of that number on, are declared to do the same, each
  // on equal parts, and to be in groups with others at the same place among theirs, with all of them, or with a part of
  // them into which they fall equally: neighbours, or devices at equal distances. Programs then
  // ask Worker::runs() which of them are to be given work. Used only with `alike`, and where the machine gives each of
  // them the same links; needs a divisor of each worker's devices.
  int alike_devices = 1;
  // What goes wrong on purpose; null or empty: nothing. Engines whose EngineInfo::faults
  // has them only.
  std::shared_ptr<const Faults> faults{};
  // Launches a repeated series of ops of a stream as one CUDA graph. The ops are held back until somebody waits for
  // them or there are many, and leave one record; engines that model a machine leave a record for each op. Engines with
  // EngineInfo::graphs only.
  bool graphs = false;
  // Whether tensors must fit into a worker's simulated devices, as they must into its host. No, if a program knows more
  // of what a job needs than the sum of its tensors. Engines that model a machine only.
  bool limits_memory = true;
  RecordLevel records = RecordLevel::all;
  double deadlock_timeout_s = 10;  // wall time without progress after which a real engine gives up
};

using Program = std::function<void(Worker&)>;

// Thrown by Engine::run with EngineOptions::alike when workers declared equal turn out to differ, or when their run
// fails. Discard whatever the program has left behind and call run() again. Every run knows more than the one before,
// so one of them succeeds or throws the actual error.
struct RunAgain {};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const Capabilities& capabilities() const = 0;
  // Calls program(worker) once per worker, concurrently, and returns every worker's records when all are done. An
  // exception of a program ends the run: the other workers are stopped and the first exception is rethrown.
  virtual Timeline run(const Program& program) = 0;
};

// The engines of this build in alphabetical order; engine/engine_info.h describes them.
std::vector<std::string> built_engines();

// Throws UnavailableError for an engine that does not exist, is not built or cannot be used on this machine, with the
// reason, and UsageError for options it lacks: see check_options().
std::unique_ptr<Engine> open_engine(std::string_view name, EngineOptions options);

}  // namespace tandem
