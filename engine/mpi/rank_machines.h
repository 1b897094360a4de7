// The devices of this process in a run that may span several: threads over host memory, or GPUs; and the other
// processes.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/mpi/rank_gpus.h"
#include "engine/mpi/remote/remote_access.h"
#include "engine/mpi/session.h"
#include "engine/threads/process_devices.h"

namespace tandem::mpi {

// The processes of an engine and its workers.
struct Ranks {
  Session* const session;  // null where this process is alone
  const std::vector<WorkerSpec> workers;
  const bool survives_losses = false;  // the job goes on without expendable processes

  int count() const { return session == nullptr ? 1 : session->rank().count; }
  int index() const { return session == nullptr ? 0 : session->rank().index; }
  // Worker w of n is in process w * processes / n or, if there are more processes than workers, in process w.
  int owner(int worker) const;
  std::vector<int> owners_of(const std::vector<Device*>& devices) const;
  // Whether the job can go on without the process: it has neither the first worker, nor a chief, nor a server.
  std::vector<bool> expendable() const;
  std::vector<int> keepers() const;  // the others, if `survives_losses`; else all
};

// The other processes of a run.
class OtherRanks final : public threads::Neighbours {
 public:
  // `ranks` has a session and outlives this. `reach_memory`: of the devices of other processes, all of which are added
  // to access().
  OtherRanks(const Ranks& ranks, bool reach_memory);

  const std::shared_ptr<RemoteAccess>& access() const { return access_; }
  bool is_here(int worker) const override { return ranks_.owner(worker) == ranks_.index(); }
  threads::RemoteMemory& memory() override { return *access_; }
  std::shared_ptr<SharedTensor> shared_tensor(std::string_view name, const std::function<Tensor()>& make) override;
  std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) override;
  void begin(threads::RunControl& control, OnLoss on_loss) override;
  void fail(const std::exception_ptr& error) override { messenger().fail(error); }
  void note_still(std::optional<std::string> waits) override;
  void flush() override { access_->flush(); }
  void await_programs() override { messenger().await_programs(); }
  void note_end_of_job() override { messenger().note_end_of_job(); }
  std::exception_ptr end(const std::exception_ptr& error) override;

 private:
  Messenger& messenger() { return ranks_.session->messenger(); }

  const Ranks& ranks_;
  const bool reach_memory_;
  const std::shared_ptr<RemoteAccess> access_;
};

// Makes devices that are threads over host memory, and groups of them in several processes.
class CpuMachine final : public threads::Machine {
 public:
  explicit CpuMachine(const Ranks& ranks);

  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override;
  std::unique_ptr<threads::RemoteDevice> make_remote_device(threads::RunContext& context, DeviceId id, int index,
                                                            int worker) override;
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override;
  threads::Neighbours* neighbours() override { return others_ ? &*others_ : nullptr; }

 private:
  const Ranks& ranks_;
  std::optional<OtherRanks> others_;  // nothing where this process is alone
};

// Makes devices that are GPUs, and those of the workers' hosts.
class GpuMachine final : public threads::Machine {
 public:
  // `machine` has the devices of this process; `gpus` says which GPUs those of all processes are on.
  GpuMachine(const Ranks& ranks, const RankGpus& gpus, std::unique_ptr<threads::ProcessMachine> machine);

  threads::ProcessMachine& machine() { return *machine_; }
  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override;
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override;
  threads::Neighbours* neighbours() override { return others_ ? &*others_ : nullptr; }

  // Adds to the setting "collectives" how the groups that span processes have communicated.
  void add_paths(std::map<std::string, std::string>& settings) const;

 private:
  void note_path(std::string path);

  const Ranks& ranks_;
  const RankGpus& gpus_;
  const std::unique_ptr<threads::ProcessMachine> machine_;
  std::optional<OtherRanks> others_;  // nothing where this process is alone
  mutable std::mutex mutex_;          // guards paths_
  std::set<std::string> paths_;
};

}  // namespace tandem::mpi
