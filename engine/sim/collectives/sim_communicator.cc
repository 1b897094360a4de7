#include "engine/sim/collectives/sim_communicator.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/sim/collectives/collective_work.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {

SimCommunicator::SimCommunicator(SimRun& run, CollectiveGroup& group, int worker)
    : run_(run), group_(group), worker_(worker), local_ranks_(group.ranks_of(worker)) {
  for (const int rank : local_ranks_) local_devices_.push_back(group.devices()[static_cast<std::size_t>(rank)]);
}

void SimCommunicator::set_timeout(std::optional<double> seconds) {
  TANDEM_CHECK(!seconds || *seconds > 0, "a time limit is greater than 0 s");
  timeout_s_ = seconds && std::isfinite(*seconds) ? seconds : std::nullopt;
}

void SimCommunicator::all_reduce(Tensors buffers, Reduction reduction, Streams streams) {
  issue({.operation = Operation::all_reduce, .reduction = reduction}, buffers, buffers, streams);
}

void SimCommunicator::reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams) {
  check_rank(root_rank);
  issue({.operation = Operation::reduce, .reduction = reduction, .root_rank = root_rank}, buffers, buffers, streams);
}

void SimCommunicator::broadcast(Tensors buffers, int root_rank, Streams streams) {
  check_rank(root_rank);
  issue({.operation = Operation::broadcast, .root_rank = root_rank}, buffers, buffers, streams);
}

void SimCommunicator::all_gather(Tensors outputs, Tensors inputs, Streams streams) {
  issue({.operation = Operation::all_gather}, outputs, inputs, streams);
}

void SimCommunicator::reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams) {
  issue({.operation = Operation::reduce_scatter, .reduction = reduction}, outputs, inputs, streams);
}

void SimCommunicator::send(const Tensor& from, int to_rank, Stream& stream) {
  issue_end(true, from, to_rank, stream);
}

void SimCommunicator::receive(const Tensor& to, int from_rank, Stream& stream) {
  issue_end(false, to, from_rank, stream);
}

void SimCommunicator::issue(CollectiveRequest request, Tensors outputs, Tensors inputs, Streams streams) {
  check_operands(request.operation, outputs, inputs, streams);
  if (outputs.empty()) return;
  const Tensor& larger = request.operation == Operation::reduce_scatter ? inputs.front() : outputs.front();
  request.dtype = larger.dtype();
  request.bytes = static_cast<double>(larger.size_bytes());
  // One launch for each device, as a group of NCCL calls costs.
  std::vector<Record> records;
  double issued_s = 0;
  for (Stream* stream : streams) {
    auto& sim_stream = static_cast<SimStream&>(*stream);
    records.push_back(sim_stream.make_record(RecordKind::collective, Category::communication,
                                             std::string(sim::name_of(request.operation))));
    issued_s = sim_stream.charge_launch();
  }
  const std::optional<double> timeout_s = timeout_s_;  // as it is now, whoever overtakes
  run_.scheduler().yield();
  in_kernel([&] {
    const auto call = group_.next_call(worker_, request);
    for (std::size_t i = 0; i < streams.size(); ++i) call->set_tensors(local_ranks_[i], outputs[i], inputs[i]);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      auto work = std::make_unique<CollectiveWork>(call, local_ranks_[i], std::move(records[i]), timeout_s);
      work->issued_s = issued_s;
      static_cast<SimStream&>(*streams[i]).enqueue(std::move(work));
    }
  });
}

void SimCommunicator::check_operands(Operation operation, Tensors outputs, Tensors inputs, Streams streams) const {
  const std::string name(sim::name_of(operation));
  const std::size_t local = local_devices_.size();
  TANDEM_CHECK(outputs.size() == local && inputs.size() == local && streams.size() == local,
               name + ": one tensor and one stream for each local device of the group");
  for (std::size_t i = 0; i < local; ++i) {
    TANDEM_CHECK(&streams[i]->device() == local_devices_[i], name + ": a stream of another device");
    TANDEM_CHECK(outputs[i].dtype() == outputs[0].dtype() && inputs[i].dtype() == outputs[0].dtype() &&
                     outputs[i].element_count() == outputs[0].element_count() &&
                     inputs[i].element_count() == inputs[0].element_count(),
                 name + ": tensors of different type or size");
  }
  if (local == 0) return;
  const std::int64_t out = outputs[0].element_count();
  const std::int64_t in = inputs[0].element_count();
  TANDEM_CHECK(operation != Operation::all_gather || out == in * size(), name + ": outputs hold every rank's input");
  TANDEM_CHECK(operation != Operation::reduce_scatter || in == out * size(),
               name + ": inputs hold every rank's output");
}

void SimCommunicator::check_rank(int rank) const {
  TANDEM_CHECK(rank >= 0 && rank < size(), fmt::format("rank {} in a group of {}", rank, size()));
}

int SimCommunicator::rank_of(const Stream& stream) const {
  for (std::size_t i = 0; i < local_devices_.size(); ++i) {
    if (local_devices_[i] == &stream.device()) return local_ranks_[i];
  }
  TANDEM_CHECK(false, "a stream of a device outside the group");
  return -1;
}

void SimCommunicator::issue_end(bool is_sender, const Tensor& tensor, int peer, Stream& stream) {
  check_rank(peer);
  auto& sim_stream = static_cast<SimStream&>(stream);
  const int rank = rank_of(stream);
  Record record =
      sim_stream.make_record(RecordKind::collective, Category::communication, is_sender ? "send" : "receive");
  record.bytes = static_cast<double>(tensor.size_bytes());
  record.ranks = 2;
  const double issued_s = sim_stream.charge_launch();
  const std::optional<double> timeout_s = timeout_s_;
  run_.scheduler().yield();
  in_kernel([&] {
    auto pair = is_sender ? group_.next_pair(rank, peer, true) : group_.next_pair(peer, rank, false);
    record.sequence = pair->sequence;
    const SimDevice& other = *group_.devices()[static_cast<std::size_t>(peer)];
    auto work = std::make_unique<PairWork>(std::move(pair), is_sender, tensor, std::move(record), other, timeout_s);
    work->issued_s = issued_s;
    sim_stream.enqueue(std::move(work));
  });
}

}  // namespace tandem::sim
