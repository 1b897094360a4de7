// Copies of values between devices, ordered by the devices' compute streams.
#pragma once

#include <vector>

#include "engine/op.h"
#include "strategies/cross_device/destinations.h"
#include "strategies/values/value.h"

namespace tandem {

// Marks the op as part of a communication, for the records.
Op as_communication(Op op);

// Return the tensor or slices themselves if they are on `device`, else copies that its later compute work may use.
Tensor copy_on(Device& device, const Tensor& tensor);
IndexedSlices copy_on(Device& device, const IndexedSlices& slices);

// Returns one copy per device of a tensor, slices or number: bare on one device, mirrored on several.
Value copies_on(const std::vector<Device*>& devices, const Value& value);
// Does so for a number, which needs no destination.
Value number_on(const Destinations& destinations, Worker& worker, const Value& number);

// Copies every tensor of a dense per-replica value on its own device, so that the originals stay as they are. Returns
// any other value unchanged.
Value copy_of_tensors(const Value& value);

// Concatenates rows and indices in order, on `device`; duplicates stay.
IndexedSlices concatenated(Device& device, const std::vector<IndexedSlices>& slices);

// Returns the whole tensor, on the slices' device: zeros with the slices' rows added.
Tensor dense(const IndexedSlices& slices);

}  // namespace tandem
