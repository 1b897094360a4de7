// One worker's view of a group: issues the part of its devices in a call to their streams.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/communicator.h"
#include "engine/sim/collectives/collective_group.h"

namespace tandem::sim {

class SimCommunicator : public Communicator {
 public:
  SimCommunicator(SimRun& run, CollectiveGroup& group, int worker);

  int size() const override { return static_cast<int>(group_.devices().size()); }
  std::span<Device* const> local_devices() const override { return local_devices_; }
  std::span<const int> local_ranks() const override { return local_ranks_; }

  void set_timeout(std::optional<double> timeout_s) override { timeout_s_ = checked_timeout(timeout_s); }
  void set_launched_apart() override { is_launched_apart_ = true; }
  void set_gathers_by_copy_engines() override { gathers_by_copy_engines_ = true; }
  void send(const Tensor& from, int to_rank, Stream& stream) override;
  void receive(const Tensor& to, int from_rank, Stream& stream) override;

 private:
  // Operands of a call, in the order of `ranks`.
  struct Operands {
    std::span<const int> ranks;
    Tensors outputs, inputs;
    Streams streams;
  };
  void call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) override;
  void call_pair(CollectiveGroup& pair, int rank, const Tensor& tensor, Stream& stream);
  void issue(CollectiveGroup& group, int caller, const CollectiveSpec& spec, const Operands& operands,
             std::size_t launches);
  // Adds the call to the work that its device repeats. Returns false where there is none.
  bool add_repeated(CollectiveGroup& group, int caller, const CollectiveSpec& spec, const Operands& operands,
                    std::span<const Record> records, double issued_s) const;

  SimRun& run_;
  CollectiveGroup& group_;
  int worker_;
  std::size_t launches_;                // of a call: one for each rank of the worker, also those that others represent
  std::vector<Device*> local_devices_;  // that run
  std::vector<int> local_ranks_;
  std::optional<double> timeout_s_;
  bool is_launched_apart_ = false;
  bool gathers_by_copy_engines_ = false;
};

}  // namespace tandem::sim
