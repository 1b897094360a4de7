// Copies of values between devices, ordered by the devices' compute streams.
#pragma once

#include <vector>

#include "engine/op.h"
#include "strategies/values/value.h"

namespace tandem {

// The op as part of a communication, for the records.
Op as_communication(Op op);

// The tensors or slices on `device`: themselves, or copies that its later compute work may use.
Tensor copy_on(Device& device, const Tensor& tensor);
IndexedSlices copy_on(Device& device, const IndexedSlices& slices);

// One copy a device of a tensor, slices or number: bare on one device, mirrored on several.
Value copies_on(const std::vector<Device*>& devices, const Value& value);

// The value with every dense per-replica tensor copied on its own device, so that the originals stay as they are.
Value copy_of_tensors(const Value& value);

// Rows and indices concatenated in order, on `device`; duplicates stay.
IndexedSlices concatenated(Device& device, const std::vector<IndexedSlices>& slices);

// Zeros with the slices' rows added, on the slices' device.
Tensor dense(const IndexedSlices& slices);

}  // namespace tandem
