// Copies elements from the host to the devices of the replicas. Internal to strategies/input.
#pragma once

#include <vector>

#include "engine/worker.h"
#include "strategies/input/element.h"
#include "strategies/values/value.h"

namespace tandem {

struct StagedElements {
  Value value;               // structured like the elements: a value per replica, or with one replica its tensor
  std::vector<Event> ready;  // per device; empty where the values stay on the host
};

// Copies elements[i] from `host` to devices[i] on that device's input stream. Texts stay on the host, as a text or a
// list of texts. `worker` runs the calling program; `host` is its CPU or another worker's.
StagedElements stage(Worker& worker, Device& host, const std::vector<Device*>& devices,
                     const std::vector<Element>& elements, bool fetch_to_device);

}  // namespace tandem
