#include "engine/sim/collectives/collective_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/sim/collectives/collective_effects.h"
#include "engine/sim/collectives/collective_model.h"
#include "engine/sim/sim_run.h"
#include "topologies/base/units.h"

namespace tandem::sim {

std::string CollectiveRequest::text() const {
  std::string text = fmt::format("{} of {} {}", sim::name_of(operation), format_quantity(bytes, Dimension::bytes),
                                 tandem::name_of(dtype));
  if (operation == Operation::broadcast || operation == Operation::reduce) text += fmt::format(", root {}", root_rank);
  if (reduction != Reduction::sum) text += reduction == Reduction::maximum ? ", maximum" : ", minimum";
  return text;
}

CollectiveCall::CollectiveCall(SimRun& run, CollectiveGroup& group, CollectiveRequest request, int first_worker,
                               std::int64_t sequence)
    : run_(run),
      group_(group),
      request_(request),
      first_worker_(first_worker),
      sequence_(sequence),
      arrivals_(group.devices().size()),
      outputs_(group.devices().size()) {}

void CollectiveCall::join(int worker, const CollectiveRequest& request) {
  if (request == request_) return;
  throw RunError(
      fmt::format("collective #{}: worker {} calls {}, worker {} calls {}; all workers of a group must make "
                  "the same calls in the same order",
                  sequence_, first_worker_, request_.text(), worker, request.text()));
}

void CollectiveCall::set_tensors(int rank, const Tensor& output, const Tensor& input) {
  outputs_[static_cast<std::size_t>(rank)] = output;
  if (output.is_same(input)) return;
  inputs_.resize(outputs_.size());
  inputs_[static_cast<std::size_t>(rank)] = input;
}

const std::vector<SimDevice*>& CollectiveCall::devices() const {
  return group_.devices();
}

void CollectiveCall::arrive(int rank, SimStream& stream, Record record, double issued_s,
                            std::optional<double> timeout_s) {
  const double arrival_s = std::max(issued_s, Simulation::now_s());
  record.start_ns = std::llround(arrival_s * 1e9);
  record.ranks = static_cast<int>(arrivals_.size());
  record.sequence = sequence_;
  record.bytes = request_.bytes;
  arrivals_[static_cast<std::size_t>(rank)] = {&stream, std::move(record)};
  last_arrival_s_ = std::max(last_arrival_s_, arrival_s);
  if (timeout_s) {
    deadline_.add(run_.simulation(), arrival_s, *timeout_s,
                  [this, rank, limit = *timeout_s] { guarded(run_.scheduler(), [&] { miss_deadline(rank, limit); }); });
  }
  if (++arrived_ == static_cast<int>(arrivals_.size())) start();
}

void CollectiveCall::start() {
  auto self = shared_from_this();
  const auto begin = [self] {
    guarded(self->run_.scheduler(), [&] { simulate(self->run_, self->group_, *self, [self] { self->end(); }); });
  };
  if (last_arrival_s_ <= Simulation::now_s()) return begin();
  run_.simulation().at(last_arrival_s_, begin);
}

void CollectiveCall::miss_deadline(int rank, double timeout_s) {
  std::vector<DeviceId> group;
  for (const SimDevice* device : devices()) group.push_back(device->id());
  throw deadline_exceeded(text(), group, group[static_cast<std::size_t>(rank)], timeout_s);
}

void CollectiveCall::end() {
  deadline_.call_off();
  if (run_.carries_values()) perform(*this);
  outputs_.clear();
  inputs_.clear();
  const Nanoseconds end_ns = Simulation::now_ns();
  for (Arrival& arrival : arrivals_) {
    arrival.record.end_ns = end_ns;
    run_.add_record(std::move(arrival.record));
  }
  for (Arrival& arrival : arrivals_) arrival.stream->finish_head();
}

std::string CollectiveCall::text() const {
  constexpr int kMost = 4;
  std::string missing;
  int named = 0;
  for (std::size_t rank = 0; rank < arrivals_.size() && named < kMost; ++rank) {
    if (arrivals_[rank].stream != nullptr) continue;
    missing += (named++ > 0 ? ", " : "; missing ") + devices()[rank]->name();
  }
  const int more = static_cast<int>(arrivals_.size()) - arrived_ - named;
  if (more > 0) missing += fmt::format(" and {} more", more);
  return fmt::format("{} #{} ({} of {} devices arrived{})", sim::name_of(request_.operation), sequence_, arrived_,
                     arrivals_.size(), missing);
}

CollectiveGroup::CollectiveGroup(SimRun& run, std::vector<SimDevice*> devices)
    : run_(run), devices_(std::move(devices)), ring_order_(devices_.size()) {
  std::vector<int> first_ranks(devices_.size());  // of the worker of each rank
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    std::vector<int>& ranks = ranks_of_[devices_[rank]->worker()];
    ranks.push_back(static_cast<int>(rank));
    first_ranks[rank] = ranks.front();
  }
  std::iota(ring_order_.begin(), ring_order_.end(), 0);
  std::stable_sort(ring_order_.begin(), ring_order_.end(), [&](int a, int b) {
    return first_ranks[static_cast<std::size_t>(a)] < first_ranks[static_cast<std::size_t>(b)];
  });
}

const std::vector<int>& CollectiveGroup::ranks_of(int worker) const {
  static const std::vector<int> none;
  const auto found = ranks_of_.find(worker);
  return found == ranks_of_.end() ? none : found->second;
}

std::shared_ptr<CollectiveCall> CollectiveGroup::next_call(int worker, const CollectiveRequest& request) {
  const std::uint64_t number = calls_made_[worker]++;
  Open& open = open_calls_[number];
  if (!open.call) {
    open.call = std::make_shared<CollectiveCall>(run_, *this, request, worker, run_.groups().next_sequence());
  }
  auto call = open.call;
  call->join(worker, request);
  if (++open.joined == static_cast<int>(ranks_of_.size())) open_calls_.erase(number);
  return call;
}

std::shared_ptr<PairCall> CollectiveGroup::next_pair(int from_rank, int to_rank, bool is_sender) {
  Pairs& pairs = pairs_[{from_rank, to_rank}];
  std::size_t& mine = is_sender ? pairs.sends : pairs.receives;
  if (mine == pairs.open.size()) {
    pairs.open.push_back(std::make_shared<PairCall>());
    pairs.open.back()->sequence = run_.groups().next_sequence();
  }
  auto pair = pairs.open[mine++];
  if (pairs.sends > 0 && pairs.receives > 0) {  // both ends know the first one now
    pairs.open.erase(pairs.open.begin());
    --pairs.sends;
    --pairs.receives;
  }
  return pair;
}

CollectiveGroup& CollectiveGroups::group(SimRun& run, std::span<const DeviceId> devices) {
  const auto same = [](const DeviceId& a, const DeviceId& b) {  // what differs most often first
    return a.task == b.task && a.index == b.index && a.type == b.type && a.job == b.job;
  };
  if (last_ != nullptr && std::ranges::equal(devices, last_devices_, same)) return *last_;
  std::vector<SimDevice*> members;
  std::vector<int> key;
  for (const DeviceId& id : devices) {
    members.push_back(&run.device(id));
    key.push_back(members.back()->index());
  }
  if (members.empty()) throw RunError("a communicator needs at least one device");
  if (std::set<int>(key.begin(), key.end()).size() != key.size()) {
    throw RunError("a communicator names a device twice");
  }
  auto& group = groups_[std::move(key)];
  if (!group) group = std::make_unique<CollectiveGroup>(run, std::move(members));
  last_devices_.assign(devices.begin(), devices.end());
  last_ = group.get();
  return *group;
}

}  // namespace tandem::sim
