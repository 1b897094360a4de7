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

void ThreadCommunicator::set_timeout(std::optional<double> timeout_s) {
  timeout_s_.store(checked_timeout(timeout_s).value_or(0));
}

std::optional<double> ThreadCommunicator::timeout_s() const {
  const double seconds = timeout_s_.load();
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

void ThreadCommunicator::send(const Tensor& from, int to_rank, Stream& stream) {
  const int rank = check_end(*this, from, to_rank, stream);
  static_cast<LocalStream&>(stream).note_use();
  static_cast<LocalStream&>(stream).join(group_->send(rank, to_rank, from), 0, timeout_s());
}

void ThreadCommunicator::receive(const Tensor& to, int from_rank, Stream& stream) {
  const int rank = check_end(*this, to, from_rank, stream);
  static_cast<LocalStream&>(stream).note_use();
  static_cast<LocalStream&>(stream).join(group_->receive(from_rank, rank, to), 1, timeout_s());
}

void ThreadCommunicator::call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) {
  if (!streams.empty()) static_cast<LocalStream&>(*streams.front()).note_use();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const int rank = local_ranks_[i];
    static_cast<LocalStream&>(*streams[i]).join(group_->join(rank, spec, outputs[i], inputs[i]), rank, timeout_s());
  }
}

}  // namespace tandem::threads
