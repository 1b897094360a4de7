// Between tensors and numbers that the host can look at.
#pragma once

#include <functional>
#include <vector>

#include "engine/worker.h"

namespace tandem {

// A tensor on `host` whose element i (row-major) is value(i), written in the order of host's compute stream. TypeError
// for element types without numbers on a CPU.
Tensor host_tensor(Device& host, DType dtype, const Shape& shape, std::function<double(std::int64_t)> value);

// The tensor itself if it is on the worker's CPU, else its copy there, after what its device's compute stream holds
// now.
Tensor copied_to_host(Worker& worker, const Tensor& tensor);

// The elements of a tensor of any device, row-major. Waits for the compute streams. Empty where the engine carries no
// values.
std::vector<double> host_values(Worker& worker, const Tensor& tensor);

// The one element of such a tensor; NaN where the engine carries no values.
double host_number(Worker& worker, const Tensor& tensor);

}  // namespace tandem
