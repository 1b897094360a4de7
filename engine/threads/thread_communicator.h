// One worker's side of a group.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "engine/communicator.h"
#include "engine/threads/group.h"

namespace tandem::threads {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int worker);

  int size() const override { return static_cast<int>(group_->devices().size()); }
  std::span<Device* const> local_devices() const override { return local_devices_; }
  std::span<const int> local_ranks() const override { return local_ranks_; }

  void set_timeout(std::optional<double> timeout_s) override;
  void send(const Tensor& from, int to_rank, Stream& stream) override;
  void receive(const Tensor& to, int from_rank, Stream& stream) override;

 private:
  void call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) override;
  std::optional<double> timeout_s() const;

  const std::shared_ptr<Group> group_;
  std::vector<Device*> local_devices_;
  std::vector<int> local_ranks_;
  std::atomic<double> timeout_s_{0};  // 0: none
};

}  // namespace tandem::threads
