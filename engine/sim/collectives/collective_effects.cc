#include "engine/sim/collectives/collective_effects.h"

#include <cstring>

#include "engine/kernels/kernels.h"

namespace tandem::sim {
namespace {

// reduction over all ranks of `count` elements from element `first` of each rank's tensor.
std::vector<std::byte> reduced(std::span<const Tensor> tensors, std::int64_t first, std::int64_t count,
                               const CollectiveRequest& request) {
  const std::size_t element = size_of(request.dtype);
  const auto at = [&](const Tensor& tensor) {
    return static_cast<const std::byte*>(tensor.data()) + static_cast<std::size_t>(first) * element;
  };
  std::vector<std::byte> result(static_cast<std::size_t>(count) * element);
  if (result.empty()) return result;
  std::memcpy(result.data(), at(tensors.front()), result.size());
  for (const Tensor& tensor : tensors.subspan(1)) {
    accumulate(request.dtype, request.reduction, result.data(), at(tensor), count);
  }
  return result;
}

void store(const Tensor& to, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
}

void gather(std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  for (const Tensor& output : outputs) {
    auto* to = static_cast<std::byte*>(output.data());
    for (const Tensor& input : inputs) {
      if (input.size_bytes() > 0) std::memmove(to, input.data(), input.size_bytes());
      to += input.size_bytes();
    }
  }
}

void scatter(std::span<const Tensor> outputs, std::span<const Tensor> inputs, const CollectiveRequest& request) {
  std::vector<std::vector<std::byte>> parts;  // all before any is stored: an output may be part of an input
  const std::int64_t count = outputs.front().element_count();
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    parts.push_back(reduced(inputs, static_cast<std::int64_t>(rank) * count, count, request));
  }
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) store(outputs[rank], parts[rank]);
}

}  // namespace

void perform(const CollectiveCall& call) {
  const CollectiveRequest& request = call.request();
  const std::span<const Tensor> outputs = call.outputs();
  const std::int64_t count = outputs.front().element_count();
  const auto root = static_cast<std::size_t>(request.root_rank);
  switch (request.operation) {
    case Operation::all_reduce: {
      const auto sum = reduced(outputs, 0, count, request);
      for (const Tensor& output : outputs) store(output, sum);
      break;
    }
    case Operation::reduce:
      store(outputs[root], reduced(outputs, 0, count, request));
      break;
    case Operation::broadcast:
      for (const Tensor& output : outputs) {
        if (output.size_bytes() > 0) std::memmove(output.data(), outputs[root].data(), output.size_bytes());
      }
      break;
    case Operation::all_gather:
      gather(outputs, call.inputs());
      break;
    case Operation::reduce_scatter:
      scatter(outputs, call.inputs(), request);
      break;
  }
}

}  // namespace tandem::sim
