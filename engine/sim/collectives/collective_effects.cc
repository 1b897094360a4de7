#include "engine/sim/collectives/collective_effects.h"

#include <cstring>
#include <vector>

#include "engine/kernels/kernels.h"

namespace tandem::sim {
namespace {

// Reduces, over all ranks, the `count` elements from element `first` on of each rank's tensor.
std::vector<std::byte> reduced(std::span<const Tensor> tensors, std::int64_t first, std::int64_t count,
                               const CollectiveSpec& spec) {
  const std::size_t element = size_of(spec.dtype);
  const auto at = [&](const Tensor& tensor) {
    return static_cast<const std::byte*>(tensor.data()) + static_cast<std::size_t>(first) * element;
  };
  std::vector<std::byte> result(static_cast<std::size_t>(count) * element);
  if (result.empty()) return result;
  std::memcpy(result.data(), at(tensors.front()), result.size());
  for (const Tensor& tensor : tensors.subspan(1)) {
    accumulate(spec.dtype, spec.reduction, result.data(), at(tensor), count);
  }
  return result;
}

void store(const Tensor& to, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
}

void copy_values(const Tensor& to, const Tensor& from) {
  if (from.size_bytes() > 0) std::memmove(to.data(), from.data(), from.size_bytes());
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

void scatter(std::span<const Tensor> outputs, std::span<const Tensor> inputs, const CollectiveSpec& spec) {
  std::vector<std::vector<std::byte>> parts;  // computed before any is stored: an output may be part of an input
  const std::int64_t count = outputs.front().element_count();
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    parts.push_back(reduced(inputs, static_cast<std::int64_t>(rank) * count, count, spec));
  }
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) store(outputs[rank], parts[rank]);
}

// Moves part j of rank i to part i of rank j.
void exchange_parts(std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  const std::size_t part = outputs.front().size_bytes() / outputs.size();
  if (part == 0) return;
  for (std::size_t from = 0; from < inputs.size(); ++from) {
    for (std::size_t to = 0; to < outputs.size(); ++to) {
      std::memcpy(static_cast<std::byte*>(outputs[to].data()) + from * part,
                  static_cast<const std::byte*>(inputs[from].data()) + to * part, part);
    }
  }
}

}  // namespace

void apply_effects(const CollectiveSpec& spec, std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  const std::int64_t count = outputs.front().element_count();
  const auto root = static_cast<std::size_t>(spec.root);
  switch (spec.kind) {
    case CollectiveKind::all_reduce: {
      const auto sum = reduced(outputs, 0, count, spec);
      for (const Tensor& output : outputs) store(output, sum);
      break;
    }
    case CollectiveKind::reduce:
      store(outputs[root], reduced(outputs, 0, count, spec));
      break;
    case CollectiveKind::broadcast:
      for (const Tensor& output : outputs) copy_values(output, outputs[root]);
      break;
    case CollectiveKind::all_gather:
      gather(outputs, inputs);
      break;
    case CollectiveKind::reduce_scatter:
      scatter(outputs, inputs, spec);
      break;
    case CollectiveKind::all_to_all:
      exchange_parts(outputs, inputs);
      break;
    case CollectiveKind::send_receive:
      copy_values(outputs[1], outputs[0]);
      break;
  }
}

}  // namespace tandem::sim
