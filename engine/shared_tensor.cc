#include "engine/shared_tensor.h"

#include <utility>

namespace tandem {
namespace {

class MonitoredTensor final : public SharedTensor {
 public:
  MonitoredTensor(Tensor tensor, std::unique_ptr<Monitor> monitor)
      : tensor_(std::move(tensor)), monitor_(std::move(monitor)) {}

  const Tensor& tensor() const override { return tensor_; }
  void lock() override { monitor_->lock(); }
  void unlock() override { monitor_->unlock(); }
  std::int64_t version() const override { return version_; }
  void note_change() override { ++version_; }

 private:
  const Tensor tensor_;
  const std::unique_ptr<Monitor> monitor_;  // guards version_
  std::int64_t version_ = 0;
};

}  // namespace

std::shared_ptr<SharedTensor> make_shared_tensor(Tensor tensor, std::unique_ptr<Monitor> monitor) {
  return std::make_shared<MonitoredTensor>(std::move(tensor), std::move(monitor));
}

}  // namespace tandem
