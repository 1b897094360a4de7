// The devices that names and numbers of TensorFlow 1's strategies mean.
#pragma once

#include <string>
#include <vector>

#include "engine/worker.h"

namespace tandem::tower {

// Returns the device of this name, as this worker sees it. Throws ValueError.
Device& device_named(Worker& worker, const std::string& name);
// Returns GPU:0 and so on of this worker, or for num_gpus = 0 its CPU:0.
std::vector<Device*> devices_by_number(Worker& worker, int num_gpus);

// Returns the first `count` compute devices of every worker that trains, or for 0 each one's CPU:0, the chief's first.
std::vector<DeviceId> first_devices_in_sync(Worker& worker, int count);

}  // namespace tandem::tower
