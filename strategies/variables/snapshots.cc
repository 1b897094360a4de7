#include "strategies/variables/snapshots.h"

#include <atomic>

namespace tandem {

struct Snapshots::Readers {
  std::atomic<int> count{0};
};

// Everything a reader has read happens before the writes of a writer that no longer finds the reader.
class Snapshots::Lease {
 public:
  explicit Lease(std::shared_ptr<Readers> readers) : readers_(std::move(readers)) {
    readers_->count.fetch_add(1, std::memory_order_relaxed);
  }
  ~Lease() { readers_->count.fetch_sub(1, std::memory_order_release); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  std::shared_ptr<Readers> readers_;
};

Snapshots::Snapshots() : readers_(std::make_shared<Readers>()) {}

Tensor Snapshots::take(const Tensor& component) const {
  return component.leased(std::make_shared<const Lease>(readers_));
}

bool Snapshots::are_held() const {
  return readers_->count.load(std::memory_order_acquire) > 0;
}

}  // namespace tandem
