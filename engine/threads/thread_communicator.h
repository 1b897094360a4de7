// One worker's side of a group.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "engine/threads/group.h"

namespace tandem::threads {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int worker);

  int size() const override { return static_cast<int>(group_->devices().size()); }
  std::span<Device* const> local_devices() const override { return local_devices_; }
  std::span<const int> local_ranks() const override { return local_ranks_; }

  void set_timeout(std::optional<double> seconds) override;
  void all_reduce(Tensors buffers, Reduction reduction, Streams streams) override;
  void reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams) override;
  void broadcast(Tensors buffers, int root_rank, Streams streams) override;
  void all_gather(Tensors outputs, Tensors inputs, Streams streams) override;
  void reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams) override;
  void send(const Tensor& from, int to_rank, Stream& stream) override;
  void receive(const Tensor& to, int from_rank, Stream& stream) override;

 private:
  void check_root(int rank) const;
  // `spec`'s element type and count are those of each rank's tensor: its output, or its input when `counts_input`.
  void call(CollectiveSpec spec, Tensors outputs, Tensors inputs, bool counts_input, Streams streams);
  int rank_of(const Stream& stream) const;
  std::optional<double> limit_s() const;

  const std::shared_ptr<Group> group_;
  std::vector<Device*> local_devices_;
  std::vector<int> local_ranks_;
  std::atomic<double> timeout_s_{0};  // 0: none
};

}  // namespace tandem::threads
