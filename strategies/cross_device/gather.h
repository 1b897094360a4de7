// Concatenates the replicas' tensors, within a worker and over several.
#pragma once

#include <vector>

#include "engine/worker.h"
#include "strategies/values/value.h"

namespace tandem {

// Returns a replica's part as a tensor; a number becomes one f64 element on `device`. Throws NotImplementedError for
// IndexedSlices and TypeError for values without numbers.
Tensor gathered_part(Worker& worker, Device& device, const Value& part);

// Throws InvalidArgumentError where ranks or other dimensions than `axis` differ, or a rank has no such axis.
void check_gather(const std::vector<Tensor>& parts, int axis);

// Concatenates the parts along `axis`, on `device` and in the order of its compute stream.
Tensor concatenated(Device& device, const std::vector<Tensor>& parts, int axis);

// Concatenates the parts of all devices of `group`, in its order, on each of `devices` (this worker's). Sizes along
// `axis` may differ: the hosts exchange shapes first, and the tensors travel padded to the longest. Throws
// InvalidArgumentError, on all workers, where any two parts do not match.
std::vector<Tensor> gather_over_group(Worker& worker, const std::vector<Device*>& devices,
                                      const std::vector<DeviceId>& group, const std::vector<Tensor>& parts, int axis);

// The CPUs of the workers that have devices in `group`, in its order.
std::vector<DeviceId> hosts_of(const std::vector<DeviceId>& group);

// Sums a tensor of each worker's host, in place, over the workers that have devices in `group`, and returns the number
// of these workers. Later work on the host's compute stream sees the sum.
int all_reduce_over_hosts(Worker& worker, const std::vector<DeviceId>& group, const Tensor& tensor);

}  // namespace tandem
