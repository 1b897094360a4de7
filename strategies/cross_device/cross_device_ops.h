// How values are combined across the devices of a strategy. Strategy code, written with communicators, copies and ops
// on streams, so that it runs in every world and its time emerges from the machine.
//
// All work is issued on each device's communication stream. It starts after what the device's compute stream holds
// when the call is made; the compute streams do not wait for it: PendingReduction::wait does.
//
// Threads: the tasks of one worker may reduce at once; those of several workers that share a group meet in the order
// of their calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/options.h"
#include "strategies/cross_device/destinations.h"
#include "strategies/values/value.h"

namespace tandem {

// One logical tensor: its copy on each device, in device order, equal shapes.
using TensorGroup = std::vector<Tensor>;

// A value to be combined, and where the result is wanted.
using ReducePair = std::pair<Value, Destinations>;

// A reduction that has been issued: the reduced values, which may be used after wait().
struct ReductionInFlight {
  std::vector<Value> values{};
  std::vector<std::pair<Stream*, Event>> ends{};  // which compute stream waits for what
  const std::vector<Value>& wait() const {
    for (const auto& [stream, event] : ends) stream->wait(event);
    return values;
  }
};

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;
  virtual std::string_view name() const = 0;  // "nccl", "hierarchical_copy", "reduction_to_one_device"
  virtual int group_size() const { return static_cast<int>(devices_.size()); }  // devices of all workers

  // A value per device combined and put on the destinations' devices, mirrored also on one. A bare tensor is one part.
  // The arguments stay as they are. ValueError without destinations and for a value without tensors.
  Value reduce(ReduceOp op, const Value& value, const Destinations& destinations);
  std::vector<Value> batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs);
  Value broadcast(const Value& value, const Destinations& destinations);

  // The same without waiting and without the wrapper on one device. What has one dense tensor a device and is wanted on
  // all of them is packed and reduced in place; the rest goes to its destinations one by one.
  ReductionInFlight begin_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs);

  // Replaces every tensor by the sum or mean over its group, in place. Groups may be packed together. Returns when
  // everything is issued; one event per device, in device order, marks its end there. Groups must not be empty and
  // hold one tensor a device (ValueError).
  std::vector<Event> all_reduce(ReduceOp op, const std::vector<TensorGroup>& groups);

  // The sum or mean of one group on `destination` only; the tensors of the group are left as they are.
  Tensor reduce_to(ReduceOp op, const TensorGroup& group, Device& destination);

 protected:
  CrossDeviceOps(Worker& worker, std::vector<Device*> devices, Packing packing);
  // Where one value is combined whose result is wanted on `destinations`.
  virtual Device& reducing_device(const std::vector<Device*>& destinations) const { return *destinations.front(); }
  // Sums each group in place on the communication streams.
  virtual void sum_in_place(const std::vector<TensorGroup>& groups) = 0;
  // The slices of all devices of the group on each destination, in device order; `slices` are this worker's.
  virtual std::vector<IndexedSlices> concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                        const std::vector<Device*>& destinations);

  Worker& worker() const { return worker_; }
  const std::vector<Device*>& devices() const { return devices_; }
  Stream& stream(std::size_t device) const { return devices_[device]->stream(kCommunicationStream); }
  // to = from, or to += from, on the stream of `to`'s device; a peer's tensor is fetched first.
  void add_from_peer(std::size_t to_device, const Tensor& to, const Tensor& from);
  void copy_to_peer(std::size_t to_device, const Tensor& to, std::size_t from_device, const Tensor& from);
  // Later work on device a's communication stream waits for what device b's holds now.
  void order_after(std::size_t a, std::size_t b) { stream(a).wait(stream(b).record()); }

 private:
  bool is_wanted_on_all(const Value& value, const Destinations& destinations) const;
  Value reduce_apart(ReduceOp op, const Value& value, const std::vector<Device*>& destinations);
  Value reduce_slices(ReduceOp op, const Value::Parts& parts, const std::vector<Device*>& destinations);
  Value reduce_over_workers(ReduceOp op, const Value::Parts& parts, const std::vector<Device*>& destinations);

  Worker& worker_;
  std::vector<Device*> devices_;
  Packing packing_;
  // Held while one call's work is issued: tasks that reduce at once must not mix their collectives.
  std::unique_ptr<Monitor> issuing_;
};

// Throws ValueError for an unknown name, with a suggestion. "auto": nccl, or collective where `group` has more devices
// than these; the others work within one worker (ValueError). `devices` are in replica order.
std::unique_ptr<CrossDeviceOps> make_cross_device_ops(std::string_view name, Worker& worker,
                                                      std::vector<Device*> devices, const std::vector<DeviceId>& group,
                                                      Packing packing);
std::vector<std::string> cross_device_ops_names();

}  // namespace tandem
