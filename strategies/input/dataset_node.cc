#include "strategies/input/dataset_node.h"

#include "engine/worker.h"

namespace tandem {

class IterationMemory::Lock {
 public:
  explicit Lock(IterationMemory& memory) : monitor_(memory.monitor_.get()) {
    if (monitor_) monitor_->lock();
  }
  ~Lock() {
    if (monitor_) monitor_->unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Monitor* monitor_;
};

IterationMemory::IterationMemory() {
  if (Worker* const worker = Task::current().worker()) monitor_ = worker->tasks().make_monitor();
}
IterationMemory::~IterationMemory() = default;

std::uint64_t IterationMemory::next_shuffle(const DatasetNode* node) {
  const Lock lock(*this);
  return shuffles_[node]++;
}

IterationMemory::Elements IterationMemory::cached(const DatasetNode* node) {
  const Lock lock(*this);
  const auto found = cached_.find(node);
  return found == cached_.end() ? nullptr : found->second;
}

void IterationMemory::keep(const DatasetNode* node, Elements elements) {
  const Lock lock(*this);
  cached_[node] = std::move(elements);
}

std::optional<Element> DatasetNode::sample() const {
  if (!inputs_.empty()) return input().sample();
  return iterate(std::make_shared<IterationMemory>())->next();
}

Element DatasetNode::at(std::int64_t /*index*/) const {
  TANDEM_UNREACHABLE("a dataset without random access");
}

}  // namespace tandem
