// How values are combined across the devices of a strategy. Strategy code, written with communicators, copies and ops
// on streams, so that it runs in every world and its time emerges from the machine.
//
// All work is issued on each device's communication stream. It starts after what the device's compute stream holds
// when the call is made; the compute streams do not wait for it: PendingReduction::wait does.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/worker.h"
#include "strategies/options.h"

namespace tandem {

// One logical tensor: its copy on each device, in device order, equal shapes.
using TensorGroup = std::vector<Tensor>;

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;
  virtual std::string_view name() const = 0;  // "nccl", "hierarchical_copy", "reduction_to_one_device"

  // Replaces every tensor by the sum or mean over its group, in place. Groups may be packed together. Returns when
  // everything is issued; one event per device, in device order, marks its end there. Groups must not be empty and
  // hold one tensor a device (ValueError).
  std::vector<Event> all_reduce(ReduceOp op, const std::vector<TensorGroup>& groups);

  // The sum or mean of one group on `destination` only; the tensors of the group are left as they are.
  Tensor reduce_to(ReduceOp op, const TensorGroup& group, Device& destination);

 protected:
  CrossDeviceOps(Worker& worker, std::vector<Device*> devices, Packing packing);
  // Sums each group in place on the communication streams.
  virtual void sum_in_place(const std::vector<TensorGroup>& groups) = 0;

  Worker& worker() const { return worker_; }
  const std::vector<Device*>& devices() const { return devices_; }
  Stream& stream(std::size_t device) const { return devices_[device]->stream(kCommunicationStream); }
  // to = from, or to += from, on the stream of `to`'s device; a peer's tensor is fetched first.
  void add_from_peer(std::size_t to_device, const Tensor& to, const Tensor& from);
  void copy_to_peer(std::size_t to_device, const Tensor& to, std::size_t from_device, const Tensor& from);
  // Later work on device a's communication stream waits for what device b's holds now.
  void order_after(std::size_t a, std::size_t b) { stream(a).wait(stream(b).record()); }

 private:
  Worker& worker_;
  std::vector<Device*> devices_;
  Packing packing_;
};

// Throws ValueError for an unknown name, with a suggestion. "auto": nccl. `devices` are in replica order.
std::unique_ptr<CrossDeviceOps> make_cross_device_ops(std::string_view name, Worker& worker,
                                                      std::vector<Device*> devices, Packing packing);
std::vector<std::string> cross_device_ops_names();

}  // namespace tandem
