#include "engine/sim/collectives/sim_communicator.h"

#include <algorithm>

#include "engine/sim/repeated_issue.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {

SimCommunicator::SimCommunicator(SimRun& run, CollectiveGroup& group, int worker)
    : run_(run), group_(group), worker_(worker), launches_(group.ranks_of(worker).size()) {
  for (const int rank : group.ranks_of(worker)) {
    if (group.place_of(rank) < 0) continue;
    local_ranks_.push_back(rank);
    local_devices_.push_back(group.devices()[static_cast<std::size_t>(rank)]);
  }
}

void SimCommunicator::send(const Tensor& from, int to_rank, Stream& stream) {
  const int rank = check_end(*this, from, to_rank, stream);
  call_pair(group_.pair(rank, to_rank, rank), 0, from, stream);
}

void SimCommunicator::receive(const Tensor& to, int from_rank, Stream& stream) {
  const int rank = check_end(*this, to, from_rank, stream);
  call_pair(group_.pair(from_rank, rank, rank), 1, to, stream);
}

void SimCommunicator::call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) {
  if (streams.empty()) return;
  const bool are_paid = is_launched_apart_ && static_cast<SimStream&>(*streams.front()).thread() == nullptr;
  CollectiveSpec said = spec;
  said.by_copy_engines = gathers_by_copy_engines_ && spec.kind == CollectiveKind::all_gather;
  issue(group_, worker_, said, {local_ranks_, outputs, inputs, streams}, are_paid ? 0 : launches_);
}

void SimCommunicator::call_pair(CollectiveGroup& pair, int rank, const Tensor& tensor, Stream& stream) {
  const CollectiveSpec spec{
      .kind = CollectiveKind::send_receive, .dtype = tensor.dtype(), .count = tensor.element_count()};
  Stream* const only = &stream;
  issue(pair, rank, spec, {{&rank, 1}, {&tensor, 1}, {&tensor, 1}, {&only, 1}}, 1);
}

// What only one device takes part in can be repeated.
bool SimCommunicator::add_repeated(CollectiveGroup& group, int caller, const CollectiveSpec& spec,
                                   const Operands& operands, std::span<const Record> records, double issued_s) const {
  const bool is_of_one = group.place_count() == 1 || group.ring() != nullptr;
  bool is_added = false;
  for (std::size_t i = 0; i < operands.ranks.size(); ++i) {
    auto& stream = static_cast<SimStream&>(*operands.streams[i]);
    RepeatedWork* const repeated = stream.sim_device().repeated(!is_of_one || timeout_s_.has_value());
    if (repeated == nullptr) continue;
    repeated->add({.kind = RepeatedItem::Kind::collective,
                   .stream = &stream,
                   .issued_s = issued_s,
                   .record = records[i],
                   .group = &group,
                   .caller = caller,
                   .rank = operands.ranks[i],
                   .spec = spec});
    is_added = true;
  }
  return is_added;
}

// One launch for each device costs as much as a group of NCCL calls does.
void SimCommunicator::issue(CollectiveGroup& group, int caller, const CollectiveSpec& spec, const Operands& operands,
                            std::size_t launches) {
  run_.note_use(worker_);
  std::vector<Record> records;
  for (std::size_t i = 0; i < operands.ranks.size(); ++i) {
    const auto& stream = static_cast<SimStream&>(*operands.streams[i]);
    records.push_back(
        stream.make_record(RecordKind::collective, Category::communication, record_name(spec.kind, operands.ranks[i])));
  }
  const auto stream_of = [&](std::size_t i) -> SimStream& {
    return static_cast<SimStream&>(*operands.streams[std::min(i, operands.streams.size() - 1)]);
  };
  for (std::size_t i = 0; i < launches; ++i) stream_of(i).charge_launch(records.back().name);
  const double issued_s = stream_of(0).charge_launch(records.back().name, 0);
  if (add_repeated(group, caller, spec, operands, records, issued_s)) return;
  const std::optional<double> timeout_s = timeout_s_;  // as of this call, even if a task changes it during the yield
  run_.scheduler().yield();
  in_kernel([&] {
    const auto joined = group.next_call(caller, spec);
    for (std::size_t i = 0; i < operands.ranks.size(); ++i) {
      joined->set_tensors(operands.ranks[i], operands.outputs[i], operands.inputs[i]);
    }
    for (std::size_t i = 0; i < operands.ranks.size(); ++i) {
      auto work = std::make_unique<CollectiveWork>(joined, operands.ranks[i], records[i], timeout_s);
      work->issued_s = issued_s;
      static_cast<SimStream&>(*operands.streams[i]).enqueue(std::move(work));
    }
  });
}

}  // namespace tandem::sim
