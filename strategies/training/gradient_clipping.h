// Gradients of limited size. Everything is computed on the gradients' devices; nobody waits.
#pragma once

#include <vector>

#include "strategies/values/value.h"

namespace tandem {

// tf.clip_by_value: elements beyond the limit become it, or its negative. Takes a tensor or IndexedSlices, and leaves
// it as it is, as the next two do.
Value clipped_by_value(const Value& gradient, double limit);
// tf.clip_by_norm: gradient * limit / max(norm, limit). The norm of IndexedSlices is that of their rows.
Value clipped_by_norm(const Value& gradient, double limit);
// tf.clip_by_global_norm, for each device's parts by themselves: all of them are multiplied by
// limit / max(global norm, limit). Gradients that are not distributed count for one device.
void clip_by_global_norm(std::vector<Value>& gradients, double limit);

}  // namespace tandem
