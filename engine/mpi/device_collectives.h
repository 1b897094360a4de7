// Executes the collectives of a group whose devices are in several processes and communicate by themselves, as GPUs do
// with NCCL. The processes agree on each call, and on one order for the calls of all such groups.
//
// Two devices of the group that exchange messages are a group of their own: the others need not know of a message.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/mpi/voted_collectives.h"
#include "engine/threads/process_devices.h"

namespace tandem::mpi {

class DeviceCollectives final : public VotedCollectives {
 public:
  // `owners` are the processes of the devices; more than one. `rank` is this process.
  DeviceCollectives(Messenger& messenger, int rank, threads::ProcessMachine& machine,
                    const std::vector<Device*>& devices, std::vector<int> owners);

  void execute(const threads::CollectiveCall& call) override;
  void abort() override { part_->abort(); }
  std::optional<std::shared_ptr<threads::CollectiveExecutor>> executor_of_pair(int from, int to) override;

 private:
  using Executor = std::shared_ptr<threads::CollectiveExecutor>;

  DeviceCollectives(Messenger& messenger, int rank, threads::ProcessMachine& machine,
                    const std::vector<Device*>& devices, std::vector<int> owners,
                    std::shared_ptr<threads::SpanningPart> part, std::uint64_t salt);

  threads::ProcessMachine& machine_;
  const std::shared_ptr<threads::SpanningPart> part_;
  LocalPairs local_pairs_;
  std::mutex pairs_mutex_;                         // guards the next two
  std::map<std::pair<int, int>, Executor> pairs_;  // from, to
  // Both directions have one part in common; the smaller rank comes first.
  std::map<std::pair<int, int>, std::shared_ptr<threads::SpanningPart>> pair_parts_;
};

}  // namespace tandem::mpi
