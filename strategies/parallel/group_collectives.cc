#include "strategies/parallel/group_collectives.h"

#include <algorithm>
#include <mutex>

namespace tandem {

GroupCollectives::GroupCollectives(Worker& worker, Communicator& communicator)
    : communicator_(communicator),
      monitor_(worker.make_monitor()),
      outputs_(communicator.local_devices().size()),
      inputs_(outputs_.size()),
      streams_(outputs_.size()) {}

void GroupCollectives::all_reduce(const Tensor& buffer, Stream& stream) {
  if (size() > 1) join(Operation::all_reduce, buffer, buffer, stream);
}

void GroupCollectives::all_gather(const Tensor& output, const Tensor& input, Stream& stream) {
  join(Operation::all_gather, output, input, stream);
}

void GroupCollectives::all_to_all(const Tensor& output, const Tensor& input, Stream& stream) {
  join(Operation::all_to_all, output, input, stream);
}

void GroupCollectives::reduce_scatter(const Tensor& output, const Tensor& input, Stream& stream) {
  join(Operation::reduce_scatter, output, input, stream);
}

void GroupCollectives::join(Operation operation, const Tensor& output, const Tensor& input, Stream& stream) {
  const std::span<Device* const> devices = communicator_.local_devices();
  const auto mine = std::find(devices.begin(), devices.end(), &stream.device());
  TANDEM_CHECK(mine != devices.end(), "a stream of no device of the group");
  const auto slot = static_cast<std::size_t>(mine - devices.begin());
  const std::lock_guard lock(*monitor_);
  outputs_[slot] = output;
  inputs_[slot] = input;
  streams_[slot] = &stream;
  if (++arrived_ == devices.size()) {
    issue(operation);
    arrived_ = 0;
    ++calls_;
    monitor_->notify_all();
    return;
  }
  // This task must not issue later work before the collective is in its stream.
  for (const std::uint64_t call = calls_; call == calls_;) monitor_->wait("the other devices of its group");
}

void GroupCollectives::issue(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      communicator_.all_reduce(outputs_, Reduction::sum, streams_);
      break;
    case Operation::all_gather:
      communicator_.all_gather(outputs_, inputs_, streams_);
      break;
    case Operation::all_to_all:
      communicator_.all_to_all(outputs_, inputs_, streams_);
      break;
    case Operation::reduce_scatter:
      communicator_.reduce_scatter(outputs_, inputs_, Reduction::sum, streams_);
      break;
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = inputs_[i] = Tensor();
}

}  // namespace tandem
