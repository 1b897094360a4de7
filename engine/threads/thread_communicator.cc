#include "engine/threads/thread_communicator.h"

#include "engine/threads/local_device.h"

namespace tandem::threads {

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<Group> group, int worker) : group_(std::move(group)) {
  for (int rank = 0; rank < size(); ++rank) {
    Device* device = group_->devices()[static_cast<std::size_t>(rank)];
    if (device->worker() != worker) continue;
    local_devices_.push_back(device);
    local_ranks_.push_back(rank);
  }
}

void ThreadCommunicator::set_timeout(std::optional<double> seconds) {
  TANDEM_CHECK(!seconds || *seconds > 0, "a time limit is greater than 0 s");
  timeout_s_.store(seconds.value_or(0));
}

std::optional<double> ThreadCommunicator::limit_s() const {
  const double seconds = timeout_s_.load();
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

void ThreadCommunicator::all_reduce(Tensors buffers, Reduction reduction, Streams streams) {
  call({.kind = CollectiveKind::all_reduce, .reduction = reduction}, buffers, buffers, false, streams);
}

void ThreadCommunicator::reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams) {
  check_root(root_rank);
  call({.kind = CollectiveKind::reduce, .reduction = reduction, .root = root_rank}, buffers, buffers, false, streams);
}

void ThreadCommunicator::broadcast(Tensors buffers, int root_rank, Streams streams) {
  check_root(root_rank);
  call({.kind = CollectiveKind::broadcast, .root = root_rank}, buffers, buffers, false, streams);
}

void ThreadCommunicator::all_gather(Tensors outputs, Tensors inputs, Streams streams) {
  call({.kind = CollectiveKind::all_gather}, outputs, inputs, true, streams);
}

void ThreadCommunicator::reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams) {
  call({.kind = CollectiveKind::reduce_scatter, .reduction = reduction}, outputs, inputs, false, streams);
}

void ThreadCommunicator::send(const Tensor& from, int to_rank, Stream& stream) {
  const int rank = rank_of(stream);
  static_cast<LocalStream&>(stream).join(group_->send(rank, to_rank, from), 0, limit_s());
}

void ThreadCommunicator::receive(const Tensor& to, int from_rank, Stream& stream) {
  const int rank = rank_of(stream);
  static_cast<LocalStream&>(stream).join(group_->receive(from_rank, rank, to), 1, limit_s());
}

void ThreadCommunicator::check_root(int rank) const {
  TANDEM_CHECK(rank >= 0 && rank < size(), "a root that the group lacks");
}

void ThreadCommunicator::call(CollectiveSpec spec, Tensors outputs, Tensors inputs, bool counts_input,
                              Streams streams) {
  const std::size_t count = local_devices_.size();
  TANDEM_CHECK(outputs.size() == count && inputs.size() == count && streams.size() == count,
               "a collective needs one tensor and one stream for each local device");
  for (std::size_t i = 0; i < count; ++i) {
    TANDEM_CHECK(&streams[i]->device() == local_devices_[i], "a stream of another device than its rank's");
    const Tensor& counted = counts_input ? inputs[i] : outputs[i];
    const Tensor& other = counts_input ? outputs[i] : inputs[i];
    const int parts = outputs.data() == inputs.data() ? 1 : size();
    TANDEM_CHECK(counted.dtype() == other.dtype() && other.element_count() == counted.element_count() * parts,
                 "the larger tensor of a collective has one part a rank");
    spec.dtype = counted.dtype();
    spec.count = counted.element_count();
    auto& stream = static_cast<LocalStream&>(*streams[i]);
    stream.join(group_->join(local_ranks_[i], spec, outputs[i], inputs[i]), local_ranks_[i], limit_s());
  }
}

int ThreadCommunicator::rank_of(const Stream& stream) const {
  for (std::size_t i = 0; i < local_devices_.size(); ++i) {
    if (local_devices_[i] == &stream.device()) return local_ranks_[i];
  }
  check_failed("device of the group", __FILE__, __LINE__, "a stream of no device of the group");
}

}  // namespace tandem::threads
