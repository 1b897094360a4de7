// Numbers without meaning for work that is measured: a GPU draws less power for products of zeros than for those of
// other numbers, and so computes them at higher clocks.
#pragma once

#include "engine/device.h"

namespace tandem {

// Returns so many numbers of [-1, 1) in the host's memory, in every call the same. Waits until they are there.
Tensor random_values(Device& host, DType dtype, std::int64_t count);

// Fills a tensor of floating-point numbers with them, repeated, on its device's compute stream; takes no other memory
// of the device.
void fill_randomly(const Tensor& to, Device& host);

}  // namespace tandem
