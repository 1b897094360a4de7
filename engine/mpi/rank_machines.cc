#include "engine/mpi/rank_machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/cpu/cpu_device.h"
#include "engine/mpi/device_collectives.h"
#include "engine/mpi/remote/mailboxes.h"
#include "engine/mpi/remote/remote_device.h"
#include "engine/mpi/remote/shared_tensors.h"
#include "engine/mpi/spanning_collectives.h"

namespace tandem::mpi {
namespace {

bool are_equal(const std::vector<int>& owners) {
  return std::all_of(owners.begin(), owners.end(), [&](int owner) { return owner == owners.front(); });
}

}  // namespace

int Ranks::owner(int worker) const {
  const auto all = static_cast<std::int64_t>(workers.size());
  return all <= count() ? worker : static_cast<int>(std::int64_t{worker} * count() / all);
}

std::vector<int> Ranks::owners_of(const std::vector<Device*>& devices) const {
  std::vector<int> owners;
  for (const Device* device : devices) owners.push_back(owner(device->worker()));
  return owners;
}

std::vector<bool> Ranks::expendable() const {
  std::vector<bool> ranks(static_cast<std::size_t>(count()), true);
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    const bool is_needed = worker == 0 || workers[worker].job == "chief" || workers[worker].job == "ps";
    if (is_needed) ranks[static_cast<std::size_t>(owner(static_cast<int>(worker)))] = false;
  }
  return ranks;
}

std::vector<int> Ranks::keepers() const {
  const std::vector<bool> may_go = expendable();
  std::vector<int> all;
  for (int rank = 0; rank < count(); ++rank) {
    if (!survives_losses || !may_go[static_cast<std::size_t>(rank)]) all.push_back(rank);
  }
  return all;
}

OtherRanks::OtherRanks(const Ranks& ranks, bool reach_memory)
    : ranks_(ranks),
      reach_memory_(reach_memory),
      access_(std::make_shared<RemoteAccess>(ranks.session->messenger(), ranks.session->transport(), ranks.keepers(),
                                             ranks.survives_losses)) {}

std::shared_ptr<SharedTensor> OtherRanks::shared_tensor(std::string_view name, const std::function<Tensor()>& make) {
  if (reach_memory_) return access_->shared_tensors().get(name, make);
  throw UnavailableError(
      fmt::format("'{}' cannot be shared: engine 'mpi' reaches the GPUs of other processes by collectives only", name));
}

std::shared_ptr<Mailbox> OtherRanks::mailbox(int owner, std::string_view name) {
  return access_->mailboxes().get(ranks_.owner(owner), owner, name);
}

void OtherRanks::begin(threads::RunControl& control, OnLoss on_loss) {
  access_->begin(control, [this, on_loss = std::move(on_loss)](int process) {
    for (int worker = 0; worker < static_cast<int>(ranks_.workers.size()); ++worker) {
      if (ranks_.owner(worker) == process) on_loss(worker);
    }
  });
}

void OtherRanks::note_still(std::optional<std::string> waits) {
  messenger().note_still(access_->is_busy() ? std::nullopt : std::move(waits));
}

std::exception_ptr OtherRanks::end(const std::exception_ptr& error) {
  std::exception_ptr how = messenger().end(error);
  access_->end();
  return how;
}

CpuMachine::CpuMachine(const Ranks& ranks) : ranks_(ranks) {
  if (ranks.session != nullptr) others_.emplace(ranks, true);
}

std::unique_ptr<threads::LocalDevice> CpuMachine::make_device(threads::RunContext& context,
                                                              threads::WorkerState& worker, DeviceId id, int index) {
  auto device = std::make_unique<cpu::CpuDevice>(context, worker, std::move(id), index);
  if (others_) others_->access()->add_device(*device);
  return device;
}

std::unique_ptr<threads::RemoteDevice> CpuMachine::make_remote_device(threads::RunContext& /*context*/, DeviceId id,
                                                                      int index, int worker) {
  const int owner = ranks_.owner(worker);
  auto device = std::make_unique<RemoteDevice>(others_->access(), std::move(id), index, worker, owner);
  others_->access()->add_remote_device(*device, owner);
  return device;
}

std::shared_ptr<threads::CollectiveExecutor> CpuMachine::make_collective_executor(const std::vector<Device*>& devices) {
  std::vector<int> owners = ranks_.owners_of(devices);
  if (are_equal(owners)) return nullptr;
  Session& session = *ranks_.session;
  return std::make_shared<SpanningCollectives>(session.messenger(), session.transport(), devices, std::move(owners));
}

GpuMachine::GpuMachine(const Ranks& ranks, const RankGpus& gpus, std::unique_ptr<threads::ProcessMachine> machine)
    : ranks_(ranks), gpus_(gpus), machine_(std::move(machine)) {
  if (ranks.session != nullptr) others_.emplace(ranks, false);
}

std::unique_ptr<threads::LocalDevice> GpuMachine::make_device(threads::RunContext& context,
                                                              threads::WorkerState& worker, DeviceId id, int index) {
  return machine_->make_device(context, worker, std::move(id), index);
}

std::shared_ptr<threads::CollectiveExecutor> GpuMachine::make_collective_executor(const std::vector<Device*>& devices) {
  std::vector<int> owners = ranks_.owners_of(devices);
  if (are_equal(owners)) return machine_->make_collective_executor(devices);
  Session& session = *ranks_.session;
  const SpanningPath path = gpus_.path_of(devices);
  if (path != SpanningPath::host) note_path(gpus_.path_text(devices));
  if (path == SpanningPath::devices) {
    return std::make_shared<DeviceCollectives>(session.messenger(), ranks_.index(), *machine_, devices,
                                               std::move(owners));
  }
  return std::make_shared<SpanningCollectives>(session.messenger(), session.transport(), devices, std::move(owners),
                                               path == SpanningPath::staged ? machine_.get() : nullptr);
}

void GpuMachine::note_path(std::string path) {
  const std::lock_guard lock(mutex_);
  paths_.insert(std::move(path));
}

void GpuMachine::add_paths(std::map<std::string, std::string>& settings) const {
  const std::lock_guard lock(mutex_);
  if (paths_.empty()) return;
  std::string& setting = settings["collectives"];
  setting = fmt::format("{}{}{}", fmt::join(paths_, "; "), setting.empty() ? "" : "; ", setting);
}

}  // namespace tandem::mpi
