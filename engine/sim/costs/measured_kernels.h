// Kernels that a machine may have rates of their own for: DeviceRates::kernels.
#pragma once

#include <string_view>

#include "engine/op.h"

namespace tandem::sim {

// Returns the kernel's name among kMeasuredKernels, or nothing.
std::string_view measured_name(const Kernel& kernel);
// Returns the bytes that decide the time of such a kernel at its rate.
double measured_bytes(const Op& op);

}  // namespace tandem::sim
