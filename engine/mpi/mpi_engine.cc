#include "engine/mpi/mpi_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>

#include "engine/bytes.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_memory.h"
#include "engine/cpu/processor.h"
#include "engine/cpu/slow_down.h"
#include "engine/kernels/kernels.h"
#include "engine/mpi/clocks.h"
#include "engine/mpi/device_collectives.h"
#include "engine/mpi/gathered_records.h"
#include "engine/mpi/mailboxes.h"
#include "engine/mpi/rank_gpus.h"
#include "engine/mpi/remote_access.h"
#include "engine/mpi/remote_device.h"
#include "engine/mpi/session.h"
#include "engine/mpi/shared_tensors.h"
#include "engine/mpi/spanning_collectives.h"
#include "engine/threads/run.h"

namespace tandem {
namespace {

Capabilities capabilities_of_cpus(int processes) {
  return {.engine = std::string(mpi_engine_info().name),
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = true,
          .remote_devices = true,
          .shared_objects = processes == 1,
          .remote_functions = processes == 1,
          .dtypes = cpu::cpu_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32},
          .device_types = {DeviceType::cpu},
          .max_devices_per_worker = 0,
          .hardware = {cpu::this_processor()}};
}

// Other processes reach GPUs by collectives only.
Capabilities capabilities_of_gpus(Capabilities of_process, int processes) {
  of_process.engine = mpi_engine_info().name;
  of_process.remote_devices = of_process.shared_objects = of_process.remote_functions = processes == 1;
  return of_process;
}

bool has_gpus(const EngineOptions& options) {
  return std::any_of(options.workers.begin(), options.workers.end(),
                     [](const WorkerSpec& worker) { return worker.device_type == DeviceType::gpu; });
}

// Worker w of n is in process w * processes / n or, if there are more processes than workers, in process w.
int owner_of(int worker, int workers, int processes) {
  if (workers <= processes) return worker;
  return static_cast<int>(std::int64_t{worker} * processes / workers);
}

// What all runs of an engine have in common.
struct Ranks {
  mpi::Session* const session;  // null where this process is alone
  const std::vector<WorkerSpec> workers;

  int count() const { return session == nullptr ? 1 : session->rank().count; }
  int index() const { return session == nullptr ? 0 : session->rank().index; }
  int owner(int worker) const { return owner_of(worker, static_cast<int>(workers.size()), count()); }
  std::vector<int> owners_of(const std::vector<Device*>& devices) const {
    std::vector<int> owners;
    for (const Device* device : devices) owners.push_back(owner(device->worker()));
    return owners;
  }
};

bool are_equal(const std::vector<int>& owners) {
  return std::set<int>(owners.begin(), owners.end()).size() == 1;
}

// The other processes of a run.
class OtherRanks : public threads::Neighbours {
 public:
  OtherRanks(const Ranks& ranks, bool reach_memory)
      : ranks_(ranks),
        reach_memory_(reach_memory),
        access_(std::make_shared<mpi::RemoteAccess>(ranks.session->messenger(), ranks.session->transport())) {}

  const std::shared_ptr<mpi::RemoteAccess>& access() const { return access_; }
  bool is_here(int worker) const override { return ranks_.owner(worker) == ranks_.index(); }
  threads::RemoteMemory& memory() override { return *access_; }
  std::shared_ptr<SharedTensor> shared_tensor(std::string_view name, const std::function<Tensor()>& make) override {
    if (reach_memory_) return access_->shared_tensors().get(name, make);
    throw UnavailableError(
        fmt::format("'{}' cannot be shared: engine 'mpi' reaches the GPUs of other processes by "
                    "collectives only",
                    name));
  }
  std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) override {
    return access_->mailboxes().get(ranks_.owner(owner), owner, name);
  }
  void begin(threads::RunControl& control) override { access_->begin(control); }
  void fail(const std::exception_ptr& error) override { messenger().fail(error); }
  void note_still(std::optional<std::string> waits) override {
    messenger().note_still(access_->is_busy() ? std::nullopt : std::move(waits));
  }
  void flush() override { access_->flush(); }
  void await_programs() override { messenger().await_programs(); }
  std::exception_ptr end(const std::exception_ptr& error) override {
    std::exception_ptr how = messenger().end(error);
    access_->end();
    return how;
  }

 private:
  mpi::Messenger& messenger() { return ranks_.session->messenger(); }

  const Ranks& ranks_;
  const bool reach_memory_;  // of the devices of other processes
  const std::shared_ptr<mpi::RemoteAccess> access_;
};

// Makes devices that are threads over host memory, and groups of them in several processes.
class CpuMachine final : public threads::Machine {
 public:
  explicit CpuMachine(const Ranks& ranks) : ranks_(ranks) {
    if (ranks.session != nullptr) others_.emplace(ranks, true);
  }

  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override {
    auto device = std::make_unique<cpu::CpuDevice>(context, worker, std::move(id), index);
    if (others_) others_->access()->add_device(*device);
    return device;
  }
  std::unique_ptr<threads::RemoteDevice> make_remote_device(threads::RunContext& /*context*/, DeviceId id, int index,
                                                            int worker) override {
    const int owner = ranks_.owner(worker);
    auto device = std::make_unique<mpi::RemoteDevice>(others_->access(), std::move(id), index, worker, owner);
    others_->access()->add_remote_device(*device, owner);
    return device;
  }
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override {
    std::vector<int> owners = ranks_.owners_of(devices);
    if (are_equal(owners)) return nullptr;
    mpi::Session& session = *ranks_.session;
    return std::make_shared<mpi::SpanningCollectives>(session.messenger(), session.transport(), devices,
                                                      std::move(owners));
  }
  threads::Neighbours* neighbours() override { return others_ ? &*others_ : nullptr; }

 private:
  const Ranks& ranks_;
  std::optional<OtherRanks> others_;  // nothing where this process is alone
};

// Makes devices that are GPUs, and those of the workers' hosts.
class GpuMachine final : public threads::Machine {
 public:
  GpuMachine(const Ranks& ranks, const mpi::RankGpus& gpus, std::unique_ptr<threads::ProcessMachine> machine)
      : ranks_(ranks), gpus_(gpus), machine_(std::move(machine)) {
    if (ranks.session != nullptr) others_.emplace(ranks, false);
  }

  threads::ProcessMachine& machine() { return *machine_; }
  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override {
    return machine_->make_device(context, worker, std::move(id), index);
  }
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override {
    std::vector<int> owners = ranks_.owners_of(devices);
    if (are_equal(owners)) return machine_->make_collective_executor(devices);
    mpi::Session& session = *ranks_.session;
    const mpi::SpanningPath path = gpus_.path_of(devices);
    if (path != mpi::SpanningPath::host) note_path(gpus_.path_text(devices));
    if (path == mpi::SpanningPath::devices) {
      return std::make_shared<mpi::DeviceCollectives>(session.messenger(), ranks_.index(), *machine_, devices,
                                                      std::move(owners));
    }
    return std::make_shared<mpi::SpanningCollectives>(
        session.messenger(), session.transport(), devices, std::move(owners),
        path == mpi::SpanningPath::staged ? &machine_->staging() : nullptr);
  }
  threads::Neighbours* neighbours() override { return others_ ? &*others_ : nullptr; }

  // Says how the groups that span processes have communicated.
  std::string paths() const {
    const std::lock_guard lock(mutex_);
    return fmt::format("{}", fmt::join(paths_, "; "));
  }

 private:
  void note_path(std::string path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(std::move(path));
  }

  const Ranks& ranks_;
  const mpi::RankGpus& gpus_;
  const std::unique_ptr<threads::ProcessMachine> machine_;
  std::optional<OtherRanks> others_;  // nothing where this process is alone
  mutable std::mutex mutex_;          // guards paths_
  std::set<std::string> paths_;
};

std::string microseconds_text(Nanoseconds ns) {
  return fmt::format("{:.1f}", static_cast<double>(ns) * 1e-3);
}

class MpiEngine final : public Engine {
 public:
  MpiEngine(EngineOptions options, std::unique_ptr<threads::ProcessDevices> gpus)
      : options_(std::move(options)), ranks_{mpi::Session::join(), options_.workers}, gpus_(std::move(gpus)) {
    capabilities_ =
        gpus_ ? capabilities_of_gpus(gpus_->capabilities(), ranks_.count()) : capabilities_of_cpus(ranks_.count());
    cpu::slow_down();  // throws for a wrong value, before the run
    settings_ = {{"hardware_threads", std::to_string(threads::available_cores())}, {"blas", blas_description()}};
    if (ranks_.session == nullptr) {
      settings_["ranks"] = "1";
      if (gpus_) note_gpus({{.host = "", .gpus = gpus_->names()}});
      return;
    }
    mpi::Session& session = *ranks_.session;
    session.meet(what_is_opened());
    if (gpus_) note_gpus(gpus_of_all(session));
    const std::vector<std::string>& hosts = session.hosts();
    const std::size_t machines = std::set<std::string>(hosts.begin(), hosts.end()).size();
    settings_["ranks"] = fmt::format("{} on {} host{}", hosts.size(), machines, machines == 1 ? "" : "s");
    settings_["mpi"] = session.transport().library();
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    Timeline timeline = gpus_ ? run_on_gpus(program) : run_on_cpus(program);
    timeline.settings.insert(settings_.begin(), settings_.end());
    return timeline;
  }

 private:
  std::vector<mpi::ProcessGpus> gpus_of_all(mpi::Session& session) const {
    ByteWriter mine;
    const std::vector<std::string> names = gpus_->names();
    mine.put(static_cast<std::uint64_t>(names.size()));
    for (const std::string& name : names) mine.put_text(name);
    std::vector<mpi::ProcessGpus> processes;
    for (const std::string& text : session.gather(mine.take())) {
      ByteReader bytes(text);
      mpi::ProcessGpus& process = processes.emplace_back();
      process.host = session.hosts()[processes.size() - 1];
      for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) process.gpus.push_back(bytes.get_text());
    }
    return processes;
  }

  void note_gpus(std::vector<mpi::ProcessGpus> processes) {
    std::vector<int> owners;
    for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
      owners.push_back(ranks_.owner(static_cast<int>(worker)));
    }
    rank_gpus_.emplace(std::move(processes), options_.workers, std::move(owners));
  }

  Timeline run_on_cpus(const Program& program) {
    CpuMachine machine(ranks_);
    Timeline timeline = run_on(machine, program);
    if (const double share = cpu::slow_down(); share > 0) {
      timeline.notes.push_back(
          fmt::format("slowed down on purpose: device work takes {:g} % longer (TANDEM_SLOW_DOWN)", share * 100));
    }
    return timeline;
  }

  Timeline run_on_gpus(const Program& program) {
    GpuMachine machine(ranks_, *rank_gpus_, gpus_->begin_run(rank_gpus_->first_gpu(ranks_.index())));
    Timeline timeline = run_on(machine, program);
    gpus_->end_run(machine.machine(), timeline);
    if (const std::string paths = machine.paths(); !paths.empty()) timeline.settings["collectives"] = paths;
    for (std::string& note : rank_gpus_->notes()) timeline.notes.push_back(std::move(note));
    return timeline;
  }

  Timeline run_on(threads::Machine& machine, const Program& program) {
    threads::Run run(capabilities_, options_, memory_, machine);
    return ranks_.session == nullptr ? run.run(program) : run_on_all_ranks(run, program);
  }

  // Returns the settings that all ranks must have in common, whatever they run.
  std::map<std::string, std::string> what_is_opened() const {
    std::string workers;
    for (const WorkerSpec& worker : options_.workers) {
      workers += fmt::format("{}/job:{}/task:{} with {} devices{}", workers.empty() ? "" : ", ", worker.job,
                             worker.task, worker.device_count, worker.device_type == DeviceType::gpu ? " (GPUs)" : "");
    }
    return {{"list of workers", workers}, {"level of records", std::string(name_of(options_.records))}};
  }

  Timeline run_on_all_ranks(threads::Run& run, const Program& program) const {
    ranks_.session->meet({});
    mpi::Transport& transport = ranks_.session->transport();
    const auto now = [&run] { return run.context().now(); };
    const std::vector<mpi::ClockReading> begin = mpi::read_clocks(transport, now);
    Timeline timeline = run.run(program);
    const std::vector<mpi::ClockReading> end = mpi::read_clocks(transport, now);
    std::vector<mpi::AlignedClock> clocks;
    for (std::size_t rank = 0; rank < begin.size(); ++rank) clocks.push_back({begin[rank], end[rank]});
    timeline.records = mpi::gather_records(transport, timeline.records, clocks);
    add_clocks(timeline.settings, clocks);
    return timeline;
  }

  static void add_clocks(std::map<std::string, std::string>& settings, const std::vector<mpi::AlignedClock>& clocks) {
    Nanoseconds offset = 0, drift = 0, error = 0;
    for (const mpi::AlignedClock& clock : clocks) {
      offset = std::max(offset, std::abs(clock.begin.offset_ns));
      drift = std::max(drift, std::abs(clock.drift_ns()));
      error = std::max({error, clock.begin.error_ns, clock.end.error_ns});
    }
    settings["clock_offset_us"] = microseconds_text(offset);
    settings["clock_drift_us"] = microseconds_text(drift);
    settings["clock_error_us"] = microseconds_text(error);
  }

  const EngineOptions options_;
  const Ranks ranks_;
  const std::unique_ptr<threads::ProcessDevices> gpus_;  // null: the devices are CPUs
  std::optional<mpi::RankGpus> rank_gpus_;               // of all processes, if the devices are GPUs
  Capabilities capabilities_;
  std::map<std::string, std::string> settings_;
  // Shared by all runs, so that only the first pays for page faults.
  const std::shared_ptr<threads::BlockPool> memory_ = cpu::make_host_memory(cpu::physical_memory_bytes());
};

}  // namespace

std::unique_ptr<Engine> open_mpi_engine(EngineOptions options,
                                        std::unique_ptr<threads::ProcessDevices> (*open_gpus)()) {
  std::unique_ptr<threads::ProcessDevices> gpus;
  if (open_gpus != nullptr && has_gpus(options)) gpus = open_gpus();
  return std::make_unique<MpiEngine>(std::move(options), std::move(gpus));
}

LaunchedJob* join_mpi_job() {
  return mpi::Session::join();
}

LibraryVersions mpi_libraries() {
  return {{"mpi", TANDEM_MPI_VERSION}};
}

}  // namespace tandem
