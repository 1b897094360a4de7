#include "engine/sim/collectives/collective_group.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/sim/sim_run.h"

namespace tandem::sim {

namespace {

bool are_different(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return !numbers.empty() && std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}

}  // namespace

CollectiveGroup::CollectiveGroup(SimRun& run, std::vector<SimDevice*> devices, Callers callers)
    : run_(run), devices_(std::move(devices)), ring_order_(devices_.size()) {
  std::vector<int> first_ranks(devices_.size());  // for each rank, the first rank of its caller
  std::set<int> running_callers;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    const int caller = callers == Callers::workers ? devices_[rank]->worker() : static_cast<int>(rank);
    std::vector<int>& ranks = ranks_of_[caller];
    ranks.push_back(static_cast<int>(rank));
    first_ranks[rank] = ranks.front();
    const bool runs = run.runs(*devices_[rank]);
    places_.push_back(runs ? static_cast<int>(place_count_++) : -1);
    if (runs && running_callers.insert(caller).second) ++callers_;
  }
  std::iota(ring_order_.begin(), ring_order_.end(), 0);
  std::stable_sort(ring_order_.begin(), ring_order_.end(), [&](int a, int b) {
    return first_ranks[static_cast<std::size_t>(a)] < first_ranks[static_cast<std::size_t>(b)];
  });
}

std::vector<DeviceId> CollectiveGroup::device_ids() const {
  std::vector<DeviceId> ids;
  for (const SimDevice* device : devices_) ids.push_back(device->id());
  return ids;
}

const std::vector<int>& CollectiveGroup::ranks_of(int worker) const {
  static const std::vector<int> none;
  const auto found = ranks_of_.find(worker);
  return found == ranks_of_.end() ? none : found->second;
}

int CollectiveGroup::place_count_of(int worker) const {
  return static_cast<int>(std::ranges::count_if(ranks_of(worker), [this](int rank) { return place_of(rank) >= 0; }));
}

std::string CollectiveGroup::name_of_caller(int caller) const {
  return devices_[static_cast<std::size_t>(ranks_of_.at(caller).front())]->name();
}

std::shared_ptr<CollectiveCall> CollectiveGroup::next_call(int caller, const CollectiveSpec& spec) {
  const std::uint64_t number = calls_made_[caller]++;
  Open& open = open_calls_[number];
  if (!open.call) {
    open.call = std::make_shared<CollectiveCall>(run_, *this, spec, caller, run_.groups().next_sequence());
  }
  auto call = open.call;
  call->join(caller, spec);
  if (++open.joined == callers_) open_calls_.erase(number);
  return call;
}

CollectiveGroup& CollectiveGroup::pair(int from_rank, int to_rank, int mine) {
  const auto size = static_cast<int>(devices_.size());
  if (place_count_ < devices_.size()) return ring_pair(mine, (to_rank - from_rank + size) % size);
  std::unique_ptr<CollectiveGroup>& pair = pairs_[{from_rank, to_rank}];
  if (!pair) {
    const std::vector<SimDevice*> ends = {devices_[static_cast<std::size_t>(from_rank)],
                                          devices_[static_cast<std::size_t>(to_rank)]};
    pair = std::make_unique<CollectiveGroup>(run_, ends, Callers::devices);
  }
  return *pair;
}

CollectiveGroup& CollectiveGroup::ring_pair(int mine, int step) {
  std::unique_ptr<CollectiveGroup>& pair = pairs_[{mine, step}];
  if (!pair) {
    const std::size_t next = static_cast<std::size_t>(mine + step) % devices_.size();
    const std::vector<SimDevice*> ends = {devices_[static_cast<std::size_t>(mine)], devices_[next]};
    pair = std::make_unique<CollectiveGroup>(run_, ends, Callers::devices);
    pair->places_ = {0, 1};
    pair->place_count_ = pair->callers_ = 2;
    pair->ring_ = this;
    pair->ring_step_ = step;
  }
  return *pair;
}

CollectiveGroup& CollectiveGroups::group(SimRun& run, std::span<const DeviceId> devices) {
  const auto same = [](const DeviceId& a, const DeviceId& b) {  // compares first what differs most often
    return a.task == b.task && a.index == b.index && a.type == b.type && a.job == b.job;
  };
  if (last_ != nullptr && std::ranges::equal(devices, last_devices_, same)) return *last_;
  std::vector<SimDevice*> members;
  std::vector<int> key;
  for (const DeviceId& id : devices) {
    members.push_back(&run.device(id));
    key.push_back(members.back()->index());
  }
  if (!are_different(key)) check_group(devices);  // throws
  auto& group = groups_[std::move(key)];
  if (!group) group = std::make_unique<CollectiveGroup>(run, std::move(members));
  last_devices_.assign(devices.begin(), devices.end());
  last_ = group.get();
  return *group;
}

}  // namespace tandem::sim
