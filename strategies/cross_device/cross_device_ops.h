// Cross-device operations: how the values of a strategy's devices are combined. They are strategy code, written with
// communicators, copies and ops on streams, so they run in every world and their time emerges from the machine.
//
// To write your own, derive from CrossDeviceOps, implement name() and sum_in_place(), and give an object to the
// strategy: MirroredStrategy(worker, devices, std::make_shared<MyOps>(worker, devices)). The base class packs tensors,
// divides for MEAN, handles IndexedSlices and destinations, and orders the work against the compute streams.
// docs/examples/tree_all_reduce.h is an example.
//
// All work is issued on the communication stream of each device. It starts after everything that the device's compute
// stream holds when the call is made; the compute streams do not wait for it (PendingReduction::wait makes them).
//
// Threads: the tasks of one worker may reduce at the same time; tasks of several workers that share a group meet in
// the order of their calls.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/communication_options.h"
#include "strategies/base/options.h"
#include "strategies/cross_device/destinations.h"
#include "strategies/cross_device/reduction.h"
#include "strategies/values/value.h"

namespace tandem {

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;
  CrossDeviceOps(const CrossDeviceOps&) = delete;
  CrossDeviceOps& operator=(const CrossDeviceOps&) = delete;

  virtual std::string_view name() const = 0;                        // as reports print it: "hierarchical_copy"
  const std::vector<Device*>& devices() const { return devices_; }  // this worker's, in replica order
  virtual int group_size() const { return static_cast<int>(devices_.size()); }  // devices of all workers

  // Combines one value per device and puts the result on the destinations, as a mirrored value even on one device. A
  // bare tensor is one part. Leaves the arguments as they are. Fields of `options` that are set override the
  // operations' own for this call. Throws ValueError without destinations, for a value without tensors and for options
  // that check_communication_options refuses.
  Value reduce(ReduceOp op, const Value& value, const Destinations& destinations,
               const CommunicationOptions& options = {});
  std::vector<Value> batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs,
                                  const CommunicationOptions& options = {});
  Value broadcast(const Value& value, const Destinations& destinations);

  // Starts batch_reduce(), without wrapping results on one device as mirrored values. Values with one dense tensor per
  // device that are wanted on all devices are packed and reduced in place; the others go to their destinations one by
  // one.
  ReductionInFlight begin_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options = {});

  // Replaces every tensor by the sum or mean over its group, in place. Returns when everything is issued: one event per
  // device, in device order, which marks the end there. Throws ValueError unless each group has one tensor per device,
  // of equal shapes and element types.
  std::vector<Event> all_reduce(ReduceOp op, const std::vector<TensorGroup>& groups,
                                const CommunicationOptions& options = {});

  // Returns the sum or mean of one group, on `destination` only. Leaves the group's tensors as they are.
  Tensor reduce_to(ReduceOp op, const TensorGroup& group, Device& destination);

 protected:
  // Throws ValueError for a negative number of packs or bytes.
  CrossDeviceOps(Worker& worker, std::vector<Device*> devices, Packing packing = {});

  // Sums each group in place, with work on the communication streams only. Packs count as groups: groups of a call may
  // have any shape. A device's tensor may be reused once its communication stream has passed what is issued here, so
  // that stream must also wait for the other devices that read the tensor.
  virtual void sum_in_place(const std::vector<TensorGroup>& groups) = 0;

  // Returns the device that combines a value whose result is wanted on `destinations`.
  virtual Device& reducing_device(const std::vector<Device*>& destinations) const { return *destinations.front(); }
  // Issues the sum of a group on `stream`, which already waits for the group's tensors; returns it on that device.
  virtual Tensor sum_on(Stream& stream, const TensorGroup& group);
  // Returns the slices of all devices of the group on each destination, in device order; `slices` are this worker's.
  virtual std::vector<IndexedSlices> concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                        const std::vector<Device*>& destinations);
  // Sets the timeout of collectives issued from now on; empty restores the one given at construction.
  virtual void set_timeout(std::optional<double> /*timeout_s*/) {}

  Worker& worker() const { return worker_; }
  // The communication stream of a device, by its place in devices().
  Stream& stream(std::size_t device) const { return devices_[device]->stream(kCommunicationStream); }
  // Adds `from`, a tensor of any device, to `to` on the stream of `to`'s device.
  void add_from_peer(std::size_t to_device, const Tensor& to, const Tensor& from);
  // Copies after what the stream of `from`'s device holds now.
  void copy_to_peer(std::size_t to_device, const Tensor& to, std::size_t from_device, const Tensor& from);
  // Makes later work on the stream of device `later` wait for what the stream of device `earlier` holds now.
  void order_after(std::size_t later, std::size_t earlier) { stream(later).wait(stream(earlier).record()); }

 private:
  class Issue;
  bool is_wanted_on_all(const Value& value, const Destinations& destinations) const;
  Value reduce_apart(ReduceOp op, const Value& value, const std::vector<Device*>& destinations,
                     const CommunicationOptions& options);
  Value reduce_slices(ReduceOp op, const Value::Parts& parts, const std::vector<Device*>& destinations,
                      const CommunicationOptions& options);
  Value reduce_over_workers(ReduceOp op, const Value::Parts& parts, const std::vector<Device*>& destinations,
                            const CommunicationOptions& options);

  Worker& worker_;
  std::vector<Device*> devices_;
  Packing packing_;
  std::unique_ptr<Monitor> issuing_;  // guards issuing: calls must not mix their collectives
};

}  // namespace tandem
