#include "engine/mpi/mpi_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_memory.h"
#include "engine/cpu/processor.h"
#include "engine/cpu/slow_down.h"
#include "engine/kernels/kernels.h"
#include "engine/mpi/clocks.h"
#include "engine/mpi/gathered_records.h"
#include "engine/mpi/mailboxes.h"
#include "engine/mpi/remote_access.h"
#include "engine/mpi/remote_device.h"
#include "engine/mpi/session.h"
#include "engine/mpi/shared_tensors.h"
#include "engine/mpi/spanning_collectives.h"
#include "engine/threads/run.h"

namespace tandem {
namespace {

Capabilities capabilities_of_ranks(int processes) {
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

// Worker w of n is in process w * processes / n or, if there are more processes than workers, in process w.
int owner_of(int worker, int workers, int processes) {
  if (workers <= processes) return worker;
  return static_cast<int>(std::int64_t{worker} * processes / workers);
}

// Makes devices that are threads over host memory, and groups of them in several processes.
class RankMachine final : public threads::Machine, private threads::Neighbours {
 public:
  // `session` is null where this process is alone.
  RankMachine(mpi::Session* session, int workers) : session_(session), workers_(workers) {
    if (session != nullptr) access_ = std::make_shared<mpi::RemoteAccess>(session->messenger(), session->transport());
  }

  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override {
    auto device = std::make_unique<cpu::CpuDevice>(context, worker, std::move(id), index);
    if (access_) access_->add_device(*device);
    return device;
  }
  std::unique_ptr<threads::RemoteDevice> make_remote_device(threads::RunContext& /*context*/, DeviceId id, int index,
                                                            int worker) override {
    auto device = std::make_unique<mpi::RemoteDevice>(access_, std::move(id), index, worker, owner(worker));
    access_->add_remote_device(*device, owner(worker));
    return device;
  }
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override {
    if (session_ == nullptr) return nullptr;
    std::vector<int> owners;
    for (const Device* device : devices) owners.push_back(owner(device->worker()));
    if (std::set<int>(owners.begin(), owners.end()).size() == 1) return nullptr;
    return std::make_shared<mpi::SpanningCollectives>(session_->messenger(), session_->transport(), devices,
                                                      std::move(owners));
  }
  threads::Neighbours* neighbours() override { return session_ == nullptr ? nullptr : this; }

 private:
  int owner(int worker) const { return owner_of(worker, workers_, session_->rank().count); }
  bool is_here(int worker) const override { return owner(worker) == session_->rank().index; }
  threads::RemoteMemory& memory() override { return *access_; }
  std::shared_ptr<SharedTensor> shared_tensor(std::string_view name, const std::function<Tensor()>& make) override {
    return access_->shared_tensors().get(name, make);
  }
  std::shared_ptr<Mailbox> mailbox(int owner_index, std::string_view name) override {
    return access_->mailboxes().get(owner(owner_index), owner_index, name);
  }
  void begin(threads::RunControl& control) override { access_->begin(control); }
  void fail(const std::exception_ptr& error) override { session_->messenger().fail(error); }
  void note_still(std::optional<std::string> waits) override {
    session_->messenger().note_still(access_->is_busy() ? std::nullopt : std::move(waits));
  }
  void flush() override { access_->flush(); }
  void await_programs() override { session_->messenger().await_programs(); }
  std::exception_ptr end(const std::exception_ptr& error) override {
    std::exception_ptr how = session_->messenger().end(error);
    access_->end();
    return how;
  }

  mpi::Session* const session_;
  const int workers_;
  std::shared_ptr<mpi::RemoteAccess> access_;  // null where this process is alone
};

std::string microseconds_text(Nanoseconds ns) {
  return fmt::format("{:.1f}", static_cast<double>(ns) * 1e-3);
}

class MpiEngine final : public Engine {
 public:
  explicit MpiEngine(EngineOptions options)
      : options_(std::move(options)),
        session_(mpi::Session::join()),
        capabilities_(capabilities_of_ranks(session_ == nullptr ? 1 : session_->rank().count)) {
    cpu::slow_down();  // throws for a wrong value, before the run
    settings_ = {{"hardware_threads", std::to_string(threads::available_cores())}, {"blas", blas_description()}};
    if (session_ == nullptr) {
      settings_["ranks"] = "1";
      return;
    }
    session_->meet(what_is_opened());
    const std::vector<std::string>& hosts = session_->hosts();
    const std::size_t machines = std::set<std::string>(hosts.begin(), hosts.end()).size();
    settings_["ranks"] = fmt::format("{} on {} host{}", hosts.size(), machines, machines == 1 ? "" : "s");
    settings_["mpi"] = session_->transport().library();
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    RankMachine machine(session_, static_cast<int>(options_.workers.size()));
    threads::Run run(capabilities_, options_, memory_, machine);
    Timeline timeline = session_ == nullptr ? run.run(program) : run_on_all_ranks(run, program);
    timeline.settings.insert(settings_.begin(), settings_.end());
    if (const double share = cpu::slow_down(); share > 0) {
      timeline.notes.push_back(
          fmt::format("slowed down on purpose: device work takes {:g} % longer (TANDEM_SLOW_DOWN)", share * 100));
    }
    return timeline;
  }

 private:
  // Returns the settings that all ranks must have in common, whatever they run.
  std::map<std::string, std::string> what_is_opened() const {
    std::string workers;
    for (const WorkerSpec& worker : options_.workers) {
      workers += fmt::format("{}/job:{}/task:{} with {} devices", workers.empty() ? "" : ", ", worker.job, worker.task,
                             worker.device_count);
    }
    return {{"list of workers", workers}, {"level of records", std::string(name_of(options_.records))}};
  }

  Timeline run_on_all_ranks(threads::Run& run, const Program& program) const {
    session_->meet({});
    mpi::Transport& transport = session_->transport();
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
  mpi::Session* const session_;  // null where this process is alone
  const Capabilities capabilities_;
  std::map<std::string, std::string> settings_;
  // Shared by all runs, so that only the first pays for page faults.
  const std::shared_ptr<threads::BlockPool> memory_ = cpu::make_host_memory(cpu::physical_memory_bytes());
};

}  // namespace

std::unique_ptr<Engine> open_mpi_engine(EngineOptions options) {
  return std::make_unique<MpiEngine>(std::move(options));
}

LaunchedJob* join_mpi_job() {
  return mpi::Session::join();
}

LibraryVersions mpi_libraries() {
  return {{"mpi", TANDEM_MPI_VERSION}};
}

}  // namespace tandem
