// The devices of a communicator, shared by the communicators of all workers. Matches the calls of their ranks.
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
  // `executor` is null where the devices' memory is the host's, and all of them are in this process.
  Group(RunContext& context, std::vector<Device*> devices, std::shared_ptr<CollectiveExecutor> executor);

  const std::vector<Device*>& devices() const { return devices_; }

  // Returns the next call of `rank` and adds its tensors; the k-th calls of all ranks are the same call. Throws
  // RunError naming both sides when another rank has asked for something else.
  std::shared_ptr<CollectiveCall> join(int rank, const CollectiveSpec& spec, const Tensor& output, const Tensor& input);
  // The same for a message between two ranks, matched in order for each direction.
  std::shared_ptr<CollectiveCall> send(int from, int to, const Tensor& tensor);
  std::shared_ptr<CollectiveCall> receive(int from, int to, const Tensor& tensor);

 private:
  // Calls that some parties have yet to join, oldest first, and how many each party has joined.
  struct Open {
    explicit Open(std::size_t parties) : next(parties) {}
    std::deque<std::shared_ptr<CollectiveCall>> calls;
    std::deque<int> missing;  // of the parties in this process
    std::int64_t first = 0;   // number of calls.front()
    std::vector<std::int64_t> next;
  };
  std::shared_ptr<CollectiveCall> join(Open& open, const std::vector<Device*>& devices,
                                       const std::shared_ptr<CollectiveExecutor>& executor, int party,
                                       const CollectiveSpec& spec, const Tensor& output, const Tensor& input);
  std::shared_ptr<CollectiveCall> make_call(std::int64_t number, const std::vector<Device*>& devices,
                                            const std::shared_ptr<CollectiveExecutor>& executor,
                                            const CollectiveSpec& spec);
  std::shared_ptr<CollectiveCall> join_pair(int from, int to, int party, const Tensor& tensor);

  RunContext& context_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<CollectiveExecutor> executor_;
  std::mutex mutex_;  // guards the rest
  Open collectives_;
  std::map<std::pair<int, int>, Open> pairs_;
};

}  // namespace tandem::threads
