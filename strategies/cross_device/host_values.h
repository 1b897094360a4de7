// Makes tensors from numbers, and reads numbers from tensors.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/worker.h"

namespace tandem {

// tf.constant: a tensor on `device` with these elements, row-major. Without a shape its rank is 1; Shape{} makes a
// scalar of one element. Later work on the device's compute stream may use it. The numbers come from the calling task's
// worker (RuntimeError outside a worker's program). ValueError for a shape of another number of elements, TypeError for
// element types that the host has no numbers for.
Tensor constant(Device& device, std::vector<double> values, std::optional<Shape> shape = std::nullopt,
                DType dtype = DType::f32);

// Returns a tensor on `host` whose element i (row-major) is value(i), written in the order of the host's compute
// stream. TypeError for element types that the host has no numbers for.
Tensor host_tensor(Device& host, DType dtype, const Shape& shape, std::function<double(std::int64_t)> value);

// Returns the tensor itself if it is on the worker's CPU, else a copy there, made after the work that its device's
// compute stream holds now.
Tensor copied_to_host(Worker& worker, const Tensor& tensor);

// Returns the elements of a tensor on any device, row-major. Blocks until the work that the compute streams hold now is
// done. Empty where the engine carries no values.
std::vector<double> host_values(Worker& worker, const Tensor& tensor);

// Returns the only element of a tensor; NaN where the engine carries no values.
double host_number(Worker& worker, const Tensor& tensor);

}  // namespace tandem
