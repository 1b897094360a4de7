// The devices of a communicator, shared by the communicators of all workers: where their calls find each other.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/threads/collective_call.h"
#include "engine/threads/run_context.h"

namespace tandem::threads {

class Group {
 public:
  // `performer`: null where the devices' memory is the host's.
  Group(RunContext& context, std::vector<Device*> devices, std::shared_ptr<CollectivePerformer> performer);

  const std::vector<Device*>& devices() const { return devices_; }

  // The next call of `rank`, with its tensors; the k-th calls of all ranks are one. Throws RunError naming both
  // sides when it differs from what another rank has asked for.
  std::shared_ptr<CollectiveCall> join(int rank, const CollectiveSpec& spec, const Tensor& output, const Tensor& input);
  // The same between two ranks, matched in order for each direction.
  std::shared_ptr<CollectiveCall> send(int from, int to, const Tensor& tensor);
  std::shared_ptr<CollectiveCall> receive(int from, int to, const Tensor& tensor);

 private:
  // Calls that some of the parties have still to join, oldest first, and how many each party has joined.
  struct Open {
    explicit Open(std::size_t parties) : next(parties) {}
    std::deque<std::shared_ptr<CollectiveCall>> calls;
    std::deque<int> missing;
    std::int64_t first = 0;  // number of calls.front()
    std::vector<std::int64_t> next;
  };
  std::shared_ptr<CollectiveCall> join(Open& open, const std::vector<Device*>& devices, int party,
                                       const CollectiveSpec& spec, const Tensor& output, const Tensor& input);
  std::shared_ptr<CollectiveCall> join_pair(int from, int to, int party, const Tensor& tensor);

  RunContext& context_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<CollectivePerformer> performer_;
  std::mutex mutex_;
  Open collectives_;
  std::map<std::pair<int, int>, Open> pairs_;
};

}  // namespace tandem::threads
