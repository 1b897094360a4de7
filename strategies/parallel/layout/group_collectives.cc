#include "strategies/parallel/layout/group_collectives.h"

#include <algorithm>
#include <mutex>

namespace tandem {

GroupCollectives::GroupCollectives(Worker& worker, Communicator& communicator)
    : communicator_(communicator),
      monitor_(worker.tasks().make_monitor()),
      outputs_(communicator.local_devices().size()),
      inputs_(outputs_.size()),
      streams_(outputs_.size()) {
  communicator_.set_launched_apart();
}

void GroupCollectives::all_reduce(const Tensor& buffer, Stream& stream, Reduction reduction) {
  if (size() > 1) join({.kind = CollectiveKind::all_reduce, .reduction = reduction}, buffer, buffer, stream);
}

void GroupCollectives::all_gather(const Tensor& output, const Tensor& input, Stream& stream) {
  join({.kind = CollectiveKind::all_gather}, output, input, stream);
}

void GroupCollectives::all_to_all(const Tensor& output, const Tensor& input, Stream& stream) {
  join({.kind = CollectiveKind::all_to_all}, output, input, stream);
}

void GroupCollectives::reduce_scatter(const Tensor& output, const Tensor& input, Stream& stream) {
  join({.kind = CollectiveKind::reduce_scatter}, output, input, stream);
}

void GroupCollectives::collective(CollectiveKind kind, int root, const Tensor& output, const Tensor& input,
                                  Stream& stream) {
  join({.kind = kind, .root = root}, output, input, stream);
}

int GroupCollectives::rank_of(const Device& device) const {
  return communicator_.local_ranks()[slot_of(device)];
}

std::size_t GroupCollectives::slot_of(const Device& device) const {
  const std::span<Device* const> devices = communicator_.local_devices();
  const auto mine = std::find(devices.begin(), devices.end(), &device);
  TANDEM_CHECK(mine != devices.end(), "a stream of no device of the group");
  return static_cast<std::size_t>(mine - devices.begin());
}

void GroupCollectives::join(const Call& call, const Tensor& output, const Tensor& input, Stream& stream) {
  const std::size_t slot = slot_of(stream.device());
  stream.took_part_in_launch();
  const std::lock_guard lock(*monitor_);
  outputs_[slot] = output;
  inputs_[slot] = input;
  streams_[slot] = &stream;
  if (++arrived_ == streams_.size()) {
    issue(call);
    arrived_ = 0;
    ++calls_;
    monitor_->notify_all();
    return;
  }
  // This task must not issue later work before the collective is in its stream.
  for (const std::uint64_t number = calls_; number == calls_;) monitor_->wait("the other devices of its group");
}

void GroupCollectives::issue(const Call& call) {
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      communicator_.all_reduce(outputs_, call.reduction, streams_);
      break;
    case CollectiveKind::reduce:
      communicator_.reduce(outputs_, call.reduction, call.root, streams_);
      break;
    case CollectiveKind::broadcast:
      communicator_.broadcast(outputs_, call.root, streams_);
      break;
    case CollectiveKind::all_gather:
      communicator_.all_gather(outputs_, inputs_, streams_);
      break;
    case CollectiveKind::reduce_scatter:
      communicator_.reduce_scatter(outputs_, inputs_, call.reduction, streams_);
      break;
    case CollectiveKind::all_to_all:
      communicator_.all_to_all(outputs_, inputs_, streams_);
      break;
    case CollectiveKind::send_receive:
      TANDEM_UNREACHABLE("a send or a receive is no collective of a group");
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = inputs_[i] = Tensor();
}

}  // namespace tandem
