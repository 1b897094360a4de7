#include "engine/shared_objects.h"

#include <fmt/format.h>

#include <mutex>

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

std::shared_ptr<void> SharedObjects::get(std::string_view name, const Worker::SharedFactory& make) {
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

}  // namespace tandem
