#include "strategies/variables/published_tensors.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

#include "engine/engine.h"
#include "strategies/base/errors.h"

namespace tandem {
namespace {

std::string unused_name(Worker& worker) {
  const auto count = std::static_pointer_cast<std::atomic<int>>(
      worker.shared().kept("number of published tensors", [] { return std::make_shared<std::atomic<int>>(0); }));
  return fmt::format("variable {} of worker {}", count->fetch_add(1), worker.index());
}

[[noreturn]] void refuse(const std::string& name) {
  throw NotFoundError(fmt::format("no coordinator of this run has '{}', or it is gone", name));
}

// The published tensors of a run whose workers are all in this process.
class Directory {
 public:
  static std::shared_ptr<Directory> of(Worker& worker) {
    return std::static_pointer_cast<Directory>(worker.shared().object(
        "published tensors", [&] { return std::make_shared<Directory>(worker.tasks().make_monitor()); }));
  }
  explicit Directory(std::unique_ptr<Monitor> monitor) : monitor_(std::move(monitor)) {}

  void add(const std::shared_ptr<StoredTensor>& stored) {
    const std::lock_guard lock(*monitor_);
    std::erase_if(tensors_, [](const auto& entry) { return entry.second.expired(); });
    tensors_[stored->shared_name] = stored;
  }
  std::shared_ptr<StoredTensor> find(const std::string& name) {
    const std::lock_guard lock(*monitor_);
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.lock();
  }

 private:
  const std::unique_ptr<Monitor> monitor_;  // guards the next
  std::map<std::string, std::weak_ptr<StoredTensor>> tensors_;
};

}  // namespace

std::shared_ptr<StoredTensor> publish_tensor(Worker& worker, const SharedState::TensorFactory& make) {
  auto stored = std::make_shared<StoredTensor>();
  stored->shared_name = unused_name(worker);
  if (worker.capabilities().shared_objects) {
    stored->shared = make_shared_tensor(make(), worker.tasks().make_monitor());
    Directory::of(worker)->add(stored);
  } else {
    stored->shared = worker.shared().tensor(stored->shared_name, make);
  }
  return stored;
}

std::shared_ptr<StoredTensor> published_tensor(Worker& worker, const std::string& shared_name) {
  if (worker.capabilities().shared_objects) {
    std::shared_ptr<StoredTensor> found = Directory::of(worker)->find(shared_name);
    if (!found) refuse(shared_name);
    return found;
  }
  auto stored = std::make_shared<StoredTensor>();
  stored->shared_name = shared_name;
  stored->shared = worker.shared().tensor(shared_name, [&]() -> Tensor { refuse(shared_name); });
  return stored;
}

}  // namespace tandem
