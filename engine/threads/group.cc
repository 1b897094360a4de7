#include "engine/threads/group.h"

#include <algorithm>

#include "engine/threads/remote_device.h"

namespace tandem::threads {
namespace {

void check_agreement(const CollectiveCall& call, int party, const CollectiveSpec& spec) {
  if (call.spec() == spec) return;
  int other = 0;
  while (!call.has_provided(other)) ++other;
  throw call_mismatch(call.sequence(), call.device(party).id().text(), spec, call.device(other).id().text(),
                      call.spec());
}

int parties_here(const std::vector<Device*>& devices) {
  return static_cast<int>(std::count_if(devices.begin(), devices.end(), [](const Device* device) {
    return dynamic_cast<const RemoteDevice*>(device) == nullptr;
  }));
}

}  // namespace

Group::Group(RunContext& context, std::vector<Device*> devices, std::shared_ptr<CollectiveExecutor> executor)
    : context_(context), devices_(std::move(devices)), executor_(std::move(executor)), collectives_(devices_.size()) {}

std::shared_ptr<CollectiveCall> Group::join(int rank, const CollectiveSpec& spec, const Tensor& output,
                                            const Tensor& input) {
  const std::lock_guard lock(mutex_);
  return join(collectives_, devices_, executor_, rank, spec, output, input);
}

std::shared_ptr<CollectiveCall> Group::send(int from, int to, const Tensor& tensor) {
  return join_pair(from, to, 0, tensor);
}

std::shared_ptr<CollectiveCall> Group::receive(int from, int to, const Tensor& tensor) {
  return join_pair(from, to, 1, tensor);
}

std::shared_ptr<CollectiveCall> Group::join_pair(int from, int to, int party, const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  Open& open = pairs_.try_emplace({from, to}, std::size_t{2}).first->second;
  const CollectiveSpec spec{
      .kind = CollectiveKind::send_receive, .dtype = tensor.dtype(), .count = tensor.element_count()};
  const std::vector<Device*> pair{devices_[static_cast<std::size_t>(from)], devices_[static_cast<std::size_t>(to)]};
  const auto own = executor_ ? executor_->executor_of_pair(from, to) : std::nullopt;
  return join(open, pair, own.value_or(executor_), party, spec, tensor, tensor);
}

// Calls of a group that spans processes are numbered within the group, as every process counts them.
std::shared_ptr<CollectiveCall> Group::make_call(std::int64_t number, const std::vector<Device*>& devices,
                                                 const std::shared_ptr<CollectiveExecutor>& executor,
                                                 const CollectiveSpec& spec) {
  const int parties = parties_here(devices);
  const bool spans = parties < static_cast<int>(devices.size());
  auto call = std::make_shared<CollectiveCall>(context_.control, spec, devices,
                                               spans ? number : context_.next_sequence.fetch_add(1), executor, parties);
  if (spans) executor->note_opened(call);
  return call;
}

std::shared_ptr<CollectiveCall> Group::join(Open& open, const std::vector<Device*>& devices,
                                            const std::shared_ptr<CollectiveExecutor>& executor, int party,
                                            const CollectiveSpec& spec, const Tensor& output, const Tensor& input) {
  const auto at = static_cast<std::size_t>(open.next[static_cast<std::size_t>(party)] - open.first);
  if (at == open.calls.size()) {
    open.calls.push_back(make_call(open.first + static_cast<std::int64_t>(at), devices, executor, spec));
    open.missing.push_back(parties_here(devices));
  }
  std::shared_ptr<CollectiveCall> call = open.calls[at];
  check_agreement(*call, party, spec);
  call->provide(party, output, input);
  ++open.next[static_cast<std::size_t>(party)];
  --open.missing[at];
  while (!open.missing.empty() && open.missing.front() == 0) {
    open.missing.pop_front();
    open.calls.pop_front();
    ++open.first;
  }
  return call;
}

}  // namespace tandem::threads
