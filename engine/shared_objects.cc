#include "engine/shared_objects.h"

#include <fmt/format.h>

#include <mutex>

#include "engine/mailbox.h"
#include "engine/worker.h"

namespace tandem {

const SharedObjects::Entry* SharedObjects::find(std::string_view name) {
  for (;;) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    if (found->second.is_made) return &found->second;
    const std::string what = fmt::format("the shared object '{}', which {} makes", name, found->second.maker);
    monitor_->wait(what);
  }
}

std::shared_ptr<void> SharedObjects::get(std::string_view name, const SharedState::Factory& make) {
  std::unique_lock lock(*monitor_);
  if (const Entry* entry = find(name)) return entry->object;
  const auto made = entries_.emplace(name, Entry{.maker = Task::current().name()}).first;
  lock.unlock();
  std::shared_ptr<void> object;
  try {
    object = make();
  } catch (...) {
    lock.lock();
    entries_.erase(made);
    monitor_->notify_all();
    throw;
  }
  lock.lock();
  made->second.object = object;
  made->second.is_made = true;
  monitor_->notify_all();
  return object;
}

std::shared_ptr<void> SharedInProcess::kept(std::string_view name, const Factory& make) {
  return object(fmt::format("{} of worker {}", name, worker_.index()), make);
}

std::shared_ptr<SharedTensor> SharedInProcess::tensor(std::string_view name, const TensorFactory& make) {
  return std::static_pointer_cast<SharedTensor>(object(
      fmt::format("tensor {}", name), [&] { return make_shared_tensor(make(), worker_.tasks().make_monitor()); }));
}

std::shared_ptr<Mailbox> SharedInProcess::mailbox(int owner, std::string_view name) {
  const int workers = worker_.count();
  TANDEM_REQUIRE(owner >= 0 && owner < workers, fmt::format("a mailbox of worker {} of {}", owner, workers));
  return std::static_pointer_cast<Mailbox>(object(fmt::format("mailbox {} of worker {}", name, owner),
                                                  [&] { return make_mailbox(owner, worker_.tasks().make_monitor()); }));
}

}  // namespace tandem
