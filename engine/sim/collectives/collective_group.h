// The groups of devices that communicate, and the calls in which their callers meet.
//
// Called in SimGrid's kernel only (see simulation.h), except where a function says otherwise.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/sim/collectives/collective_call.h"

namespace tandem::sim {

class CollectiveGroup {
 public:
  // Who makes the calls of a group: each worker for all of its devices or, in a pair, each device for itself.
  enum class Callers : std::uint8_t { workers, devices };
  CollectiveGroup(SimRun& run, std::vector<SimDevice*> devices, Callers callers = Callers::workers);

  const std::vector<SimDevice*>& devices() const { return devices_; }  // by rank
  std::vector<DeviceId> device_ids() const;
  // The ranks in the order in which rings pass them: devices of one worker are neighbours.
  const std::vector<int>& ring_order() const { return ring_order_; }
  const std::vector<int>& ranks_of(int worker) const;
  int worker_count() const { return static_cast<int>(ranks_of_.size()); }  // not for a pair
  // Only the ranks of running devices have places in a call, which count from 0.
  std::size_t place_count() const { return place_count_; }
  int place_count_of(int worker) const;
  int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)]; }  // -1: none
  // Names a worker by the first of its devices.
  std::string name_of_caller(int caller) const;

  // Returns the next call of `caller` (a worker's index or a rank). The n-th calls of all callers are one call, which
  // the first of them creates. Throws RunError if a later one does not agree with it.
  std::shared_ptr<CollectiveCall> next_call(int caller, const CollectiveSpec& spec);
  // Returns the group for sends from one rank to another, in which the sender is rank 0 and the receiver rank 1, for
  // the end that is `mine`. Usable from tasks.
  //
  // Where a device represents other members, all of them send as many places further: it then meets itself, as the
  // sender of what it sends and as the receiver of what comes, and the pair represents those of all members.
  CollectiveGroup& pair(int from_rank, int to_rank, int mine);
  // The group whose members all send, as this pair does; null: one end sends to the other.
  const CollectiveGroup* ring() const { return ring_; }
  int ring_step() const { return ring_step_; }  // so many places further

 private:
  CollectiveGroup& ring_pair(int mine, int step);
  struct Open {
    std::shared_ptr<CollectiveCall> call;
    std::size_t joined = 0;  // callers
  };
  SimRun& run_;
  std::vector<SimDevice*> devices_;
  std::vector<int> ring_order_;
  std::map<int, std::vector<int>> ranks_of_;  // by caller
  std::vector<int> places_;                   // by rank
  std::size_t place_count_ = 0;
  std::size_t callers_ = 0;                   // that run
  std::map<int, std::uint64_t> calls_made_;   // by caller
  std::map<std::uint64_t, Open> open_calls_;  // by number; those that some caller has yet to make
  std::map<std::pair<int, int>, std::unique_ptr<CollectiveGroup>> pairs_;  // by both ranks, or one and the step
  const CollectiveGroup* ring_ = nullptr;
  int ring_step_ = 0;
};

class CollectiveGroups {
 public:
  // Returns the one group of these devices. Throws UsageError for a list that no communicator can have. Usable from
  // tasks.
  CollectiveGroup& group(SimRun& run, std::span<const DeviceId> devices);
  std::int64_t next_sequence() { return sequence_++; }

 private:
  std::map<std::vector<int>, std::unique_ptr<CollectiveGroup>> groups_;  // by the indices of the devices
  // The last group asked for: thousands of workers ask for the same thousands of devices, one after the other.
  std::vector<DeviceId> last_devices_;
  CollectiveGroup* last_ = nullptr;
  std::int64_t sequence_ = 0;
};

}  // namespace tandem::sim
