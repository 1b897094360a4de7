#include "engine/mpi/mpi_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include "engine/base/bytes.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_memory.h"
#include "engine/cpu/processor.h"
#include "engine/cpu/slow_down.h"
#include "engine/faults/faults.h"
#include "engine/kernels/gemm.h"
#include "engine/mpi/clocks.h"
#include "engine/mpi/gathered_records.h"
#include "engine/mpi/launched_sockets.h"
#include "engine/mpi/rank_machines.h"
#include "engine/mpi/session.h"
#include "engine/mpi/transport/transport_library.h"
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

std::string microseconds_text(Nanoseconds ns) {
  return fmt::format("{:.1f}", static_cast<double>(ns) * 1e-3);
}

class MpiEngine final : public Engine {
 public:
  MpiEngine(EngineOptions options, OpenGpus open_gpus)
      : options_(std::move(options)),
        ranks_{mpi::Session::join(), options_.workers, options_.faults && options_.faults->survives_losses()} {
    cpu::slow_down();  // throws for a wrong value, before the run
    settings_ = {{"hardware_threads", std::to_string(threads::available_cores())}, {"blas", blas_description()}};
    if (mpi::Session* session = ranks_.session) {
      session->meet(what_is_opened());
      session->transport().set_expendable(ranks_.survives_losses ? ranks_.expendable() : std::vector<bool>());
      if (!ranks_.survives_losses) require_all_ranks();
      const std::vector<std::string>& hosts = session->hosts();
      const std::size_t machines = std::set<std::string>(hosts.begin(), hosts.end()).size();
      settings_["ranks"] = fmt::format("{} on {} host{}", hosts.size(), machines, machines == 1 ? "" : "s");
      const bool has_sockets = session->transport().can_lose_ranks();
      settings_[has_sockets ? "connections" : "mpi"] = has_sockets ? "TCP" : session->transport().library();
    } else {
      settings_["ranks"] = "1";
    }
    if (open_gpus != nullptr && has_gpus(options_)) note_gpus(open_on_all_ranks(open_gpus));
    capabilities_ =
        gpus_ ? capabilities_of_gpus(gpus_->capabilities(), ranks_.count()) : capabilities_of_cpus(ranks_.count());
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    Timeline timeline = gpus_ ? run_on_gpus(program) : run_on_cpus(program);
    timeline.settings.insert(settings_.begin(), settings_.end());
    return timeline;
  }

 private:
  void require_all_ranks() const {
    const std::vector<mpi::LostRank> lost = ranks_.session->messenger().lost_ranks();
    if (lost.empty()) return;
    throw RunError(fmt::format("{} was lost before this run", ranks_.session->place(lost.front().rank)));
  }

  // Opens the GPUs of this process, and returns what all have opened. Throws UnavailableError on all ranks if one of
  // them has no GPU.
  std::vector<mpi::ProcessGpus> open_on_all_ranks(OpenGpus open_gpus) {
    if (ranks_.session == nullptr) {
      gpus_ = open_gpus();
      return {{.host = "", .gpus = gpus_->names()}};
    }
    std::string failure;
    try {
      gpus_ = open_gpus();
    } catch (const UnavailableError& error) {
      failure = error.what();
    }
    const std::vector<std::string> names = gpus_ ? gpus_->names() : std::vector<std::string>();
    ByteWriter mine;
    mine.put_text(failure).put(static_cast<std::uint64_t>(names.size()));
    for (const std::string& name : names) mine.put_text(name);
    return gpus_of_all(ranks_.session->gather(mine.take()));
  }

  // Reads what each process has said.
  std::vector<mpi::ProcessGpus> gpus_of_all(const std::vector<std::string>& texts) const {
    std::vector<mpi::ProcessGpus> processes;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      ByteReader bytes(texts[rank]);
      if (const std::string failure = bytes.get_text(); !failure.empty()) {
        throw UnavailableError(fmt::format("{}: {}", ranks_.session->place(static_cast<int>(rank)), failure));
      }
      mpi::ProcessGpus& process = processes.emplace_back();
      process.host = ranks_.session->hosts()[rank];
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
    mpi::CpuMachine machine(ranks_);
    Timeline timeline = run_on(machine, program);
    if (const double share = cpu::slow_down(); share > 0) {
      timeline.notes.push_back(
          fmt::format("slowed down on purpose: device work takes {:g} % longer (TANDEM_SLOW_DOWN)", share * 100));
    }
    return timeline;
  }

  Timeline run_on_gpus(const Program& program) {
    mpi::GpuMachine machine(ranks_, *rank_gpus_, gpus_->begin_run(rank_gpus_->first_gpu(ranks_.index())));
    Timeline timeline = run_on(machine, program);
    gpus_->end_run(machine.machine(), timeline);
    machine.add_paths(timeline.settings);
    for (std::string& note : rank_gpus_->notes()) timeline.notes.push_back(std::move(note));
    return timeline;
  }

  // A worker that is a process of its own is killed, and does not come back.
  void check_losses() const {
    if (ranks_.session == nullptr || !options_.faults) return;
    for (const LostWorker& lost : options_.faults->lost_workers) {
      if (lost.call) throw UsageError("engine 'mpi' counts the calls that use a worker's devices in one process only");
      if (lost.ends_run) continue;
      if (std::isfinite(lost.back_after_s)) {
        throw UsageError("engine 'mpi' loses a worker for a while in one process only");
      }
      const auto process = static_cast<std::size_t>(ranks_.owner(lost.worker));
      if (!ranks_.expendable()[process]) {
        throw UsageError(fmt::format("no run goes on without {}, which has the first worker, a chief or a server",
                                     ranks_.session->place(static_cast<int>(process))));
      }
      if (!ranks_.session->transport().can_lose_ranks()) throw UnavailableError(mpi::why_launch_loses_no_rank());
    }
  }

  Timeline run_on(threads::Machine& machine, const Program& program) {
    check_losses();
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
    return {{"list of workers", workers},
            {"level of records", std::string(name_of(options_.records))},
            {"way with lost workers", ranks_.survives_losses ? "to go on" : "to end"}};
  }

  Timeline run_on_all_ranks(threads::Run& run, const Program& program) const {
    ranks_.session->meet({});
    mpi::Transport& transport = ranks_.session->transport();
    const auto start = threads::Clock::now();
    const auto now = [&run] { return run.context().now(); };
    const std::vector<mpi::ClockReading> begin = mpi::read_clocks(transport, now);
    Timeline timeline = run.run(program);
    const std::vector<mpi::ClockReading> end = mpi::read_clocks(transport, now);
    std::vector<mpi::AlignedClock> clocks;
    for (std::size_t rank = 0; rank < begin.size(); ++rank) {
      clocks.push_back({begin[rank], transport.is_lost(static_cast<int>(rank)) ? begin[rank] : end[rank]});
    }
    timeline.records = mpi::gather_records(transport, timeline.records, clocks);
    add_clocks(timeline.settings, clocks);
    add_losses(timeline, start);
    return timeline;
  }

  void add_losses(Timeline& timeline, threads::Clock::time_point start) const {
    if (ranks_.survives_losses && !ranks_.session->transport().can_lose_ranks()) {
      timeline.notes.push_back(mpi::why_launch_loses_no_rank());
    }
    for (const mpi::LostRank& lost : ranks_.session->messenger().lost_ranks()) {
      const std::chrono::duration<double> when = lost.at - start;
      std::string workers;
      for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
        if (ranks_.owner(static_cast<int>(worker)) == lost.rank) workers += options_.workers[worker].text() + " ";
      }
      timeline.notes.push_back(fmt::format("{}({}) was lost {:.3g} s into the run; the others went on without it",
                                           workers, ranks_.session->place(lost.rank), when.count()));
    }
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
  const mpi::Ranks ranks_;
  std::unique_ptr<threads::ProcessDevices> gpus_;  // null: the devices are CPUs
  std::optional<mpi::RankGpus> rank_gpus_;         // of all processes, if the devices are GPUs
  Capabilities capabilities_;
  std::map<std::string, std::string> settings_;
  // Shared by all runs, so that only the first pays for page faults.
  const std::shared_ptr<threads::BlockPool> memory_ = cpu::make_host_memory(cpu::physical_memory_bytes());
};

}  // namespace

std::unique_ptr<Engine> open_mpi_engine(EngineOptions options, OpenGpus open_gpus) {
  return std::make_unique<MpiEngine>(std::move(options), open_gpus);
}

LaunchedJob* join_mpi_job() {
  return mpi::Session::join();
}

LibraryVersions mpi_libraries() {
  const std::string found = mpi::found_mpi();
  constexpr std::string_view kBuiltWith = TANDEM_MPI_VERSION;
  if (kBuiltWith.empty()) return {{"mpi", "none (over TCP only)"}};
  return {{"mpi", fmt::format("{} (built with {})", found.empty() ? "not found" : found, kBuiltWith)}};
}

}  // namespace tandem
