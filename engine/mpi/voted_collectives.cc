#include "engine/mpi/voted_collectives.h"

#include <algorithm>

namespace tandem::mpi {
namespace {

// FNV-1a over the devices' places in the timeline, equal in every process.
std::uint64_t hash_of_group(const std::vector<Device*>& devices, std::uint64_t salt) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ salt;
  for (const Device* device : devices) {
    hash = (hash ^ static_cast<std::uint64_t>(device->index() + 1)) * 0x100000001b3ULL;
    hash ^= hash >> 31;
  }
  return hash;
}

std::shared_ptr<const SpanningGroup> group_of(const std::vector<Device*>& devices, std::vector<int> owners,
                                              std::uint64_t salt) {
  SpanningGroup group{
      .hash = hash_of_group(devices, salt), .devices = {}, .owners = std::move(owners), .processes = {}};
  for (const Device* device : devices) group.devices.push_back(device->id());
  group.processes = group.owners;
  std::sort(group.processes.begin(), group.processes.end());
  group.processes.erase(std::unique(group.processes.begin(), group.processes.end()), group.processes.end());
  return std::make_shared<const SpanningGroup>(std::move(group));
}

}  // namespace

std::shared_ptr<threads::CollectiveExecutor> LocalPairs::get(threads::ProcessMachine& machine, int from, int to,
                                                             const std::vector<Device*>& pair) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<threads::CollectiveExecutor>& executor = executors_[std::minmax(from, to)];
  if (!executor) executor = machine.make_collective_executor(pair);
  return executor;
}

VotedCollectives::VotedCollectives(Messenger& messenger, int rank, const std::vector<Device*>& devices,
                                   std::vector<int> owners, std::uint64_t salt)
    : messenger_(messenger), rank_(rank), devices_(devices), group_(group_of(devices, std::move(owners), salt)) {}

void VotedCollectives::note_opened(const std::shared_ptr<threads::CollectiveCall>& call) {
  const CallId id = id_of(*call);
  call->set_record_sequence(id.record_sequence());
  messenger_.agreement().note_opened(id, group_, call);
}

void VotedCollectives::ask_to_break(const threads::CollectiveCall& call, const std::exception_ptr& error) {
  messenger_.agreement().give_up(id_of(call), call, error);
}

void VotedCollectives::refuse(const threads::CollectiveCall& call, const std::exception_ptr& error) {
  ask_to_break(call, error);
  try {
    messenger_.agreement().take(id_of(call));
  } catch (...) {  // the error; here the call ends with its own
  }
}

}  // namespace tandem::mpi
