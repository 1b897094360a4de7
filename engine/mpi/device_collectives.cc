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
    : VotedCollectives(messenger, rank, devices, std::move(owners), salt), machine_(machine), part_(std::move(part)) {}

void DeviceCollectives::execute(const threads::CollectiveCall& call) {
  const CallId id = id_of(call);
  std::string invitation;
  if (group().leader() == process()) invitation = prepare_vote(call, [this] { return part_->invitation(); });
  const AgreedCall agreed = messenger().agree(id, call, CallOrder::job, std::move(invitation));
  const Turn turn(messenger(), id);
  part_->execute(call, agreed.values.front());
}

std::optional<std::shared_ptr<threads::CollectiveExecutor>> DeviceCollectives::executor_of_pair(int from, int to) {
  const std::vector<Device*> pair{device(from), device(to)};
  if (owner(from) == owner(to)) return is_here(from) ? local_pairs_.get(machine_, from, to, pair) : nullptr;
  const std::lock_guard lock(pairs_mutex_);
  Executor& executor = pairs_[{from, to}];
  if (executor) return executor;
  const auto [first, second] = std::minmax(from, to);
  std::shared_ptr<threads::SpanningPart>& part = pair_parts_[{first, second}];
  if (!part) part = machine_.make_spanning_part({device(first), device(second)});
  executor.reset(
      new DeviceCollectives(messenger(), process(), machine_, pair, {owner(from), owner(to)}, part, group().hash));
  return executor;
}

}  // namespace tandem::mpi
