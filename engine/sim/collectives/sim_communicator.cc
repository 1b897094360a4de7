#include "engine/sim/collectives/sim_communicator.h"

#include "engine/sim/sim_run.h"

namespace tandem::sim {

SimCommunicator::SimCommunicator(SimRun& run, CollectiveGroup& group, int worker)
    : run_(run), group_(group), worker_(worker), local_ranks_(group.ranks_of(worker)) {
  for (const int rank : local_ranks_) local_devices_.push_back(group.devices()[static_cast<std::size_t>(rank)]);
}

void SimCommunicator::send(const Tensor& from, int to_rank, Stream& stream) {
  const int rank = check_end(*this, from, to_rank, stream);
  call_pair(group_.pair(rank, to_rank), 0, from, stream);
}

void SimCommunicator::receive(const Tensor& to, int from_rank, Stream& stream) {
  const int rank = check_end(*this, to, from_rank, stream);
  call_pair(group_.pair(from_rank, rank), 1, to, stream);
}

void SimCommunicator::call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) {
  if (streams.empty()) return;
  issue(group_, worker_, spec, {local_ranks_, outputs, inputs, streams});
}

void SimCommunicator::call_pair(CollectiveGroup& pair, int rank, const Tensor& tensor, Stream& stream) {
  const CollectiveSpec spec{
      .kind = CollectiveKind::send_receive, .dtype = tensor.dtype(), .count = tensor.element_count()};
  Stream* const only = &stream;
  issue(pair, rank, spec, {{&rank, 1}, {&tensor, 1}, {&tensor, 1}, {&only, 1}});
}

void SimCommunicator::issue(CollectiveGroup& group, int caller, const CollectiveSpec& spec, const Operands& operands) {
  // One launch for each device, as a group of NCCL calls costs.
  std::vector<Record> records;
  double issued_s = 0;
  for (std::size_t i = 0; i < operands.ranks.size(); ++i) {
    auto& stream = static_cast<SimStream&>(*operands.streams[i]);
    records.push_back(
        stream.make_record(RecordKind::collective, Category::communication, record_name(spec.kind, operands.ranks[i])));
    issued_s = stream.charge_launch(records.back().name);
  }
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
