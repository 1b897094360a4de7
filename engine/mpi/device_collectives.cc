#include "engine/mpi/device_collectives.h"

#include <algorithm>

namespace tandem::mpi {
namespace {

// Gives the turn to the next call, however this one ends.
class Turn {
 public:
  Turn(Messenger& messenger, const CallId& id) : messenger_(messenger), id_(id) {}
  ~Turn() { messenger_.end_turn(id_, CallOrder::job); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Messenger& messenger_;
  const CallId id_;
};

}  // namespace

DeviceCollectives::DeviceCollectives(Messenger& messenger, int rank, threads::ProcessMachine& machine,
                                     const std::vector<Device*>& devices, std::vector<int> owners)
    : DeviceCollectives(messenger, rank, machine, devices, std::move(owners), machine.make_spanning_part(devices), 0) {}

DeviceCollectives::DeviceCollectives(Messenger& messenger, int rank, threads::ProcessMachine& machine,
                                     const std::vector<Device*>& devices, std::vector<int> owners,
                                     std::shared_ptr<threads::SpanningPart> part, std::uint64_t salt)
    : VotedCollectives(messenger, rank, devices, std::move(owners), salt),
      rank_(rank),
      machine_(machine),
      part_(std::move(part)) {}

void DeviceCollectives::execute(const threads::CollectiveCall& call) {
  const CallId id = id_of(call);
  const bool is_leader = group().leader() == rank_;
  const AgreedCall agreed = messenger().agree(id, call, CallOrder::job, is_leader ? part_->invitation() : "");
  const Turn turn(messenger(), id);
  part_->execute(call, agreed.values.front());
}

std::optional<std::shared_ptr<threads::CollectiveExecutor>> DeviceCollectives::executor_of_pair(int from, int to) {
  const std::lock_guard lock(pairs_mutex_);
  Executor& executor = pairs_[{from, to}];
  if (!executor) executor = make_pair(from, to);
  return executor;
}

DeviceCollectives::Executor DeviceCollectives::make_pair(int from, int to) {
  const auto device = [this](int rank) { return devices()[static_cast<std::size_t>(rank)]; };
  const std::vector<Device*> pair{device(from), device(to)};
  if (owner(from) == owner(to)) {
    return is_here(from) ? machine_.make_collective_executor(pair) : std::shared_ptr<threads::CollectiveExecutor>();
  }
  const auto [first, second] = std::minmax(from, to);
  std::shared_ptr<threads::SpanningPart>& part = messages_[{first, second}];
  if (!part) part = machine_.make_spanning_part({device(first), device(second)});
  return Executor(
      new DeviceCollectives(messenger(), rank_, machine_, pair, {owner(from), owner(to)}, part, group().hash));
}

}  // namespace tandem::mpi
