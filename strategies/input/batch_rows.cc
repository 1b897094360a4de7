#include "strategies/input/batch_rows.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

template <typename Join>
Element join(const std::vector<Element>& elements, const Join& join_tensors) {
  const Element& first = elements.front();
  std::vector<HostTensor> components;
  for (std::size_t c = 0; c < first.components().size(); ++c) {
    std::vector<HostTensor> tensors;
    tensors.reserve(elements.size());
    for (const Element& element : elements) {
      if (element.structure() != first.structure() && *element.structure() != *first.structure()) {
        throw InvalidArgumentError("cannot batch elements of different structures");
      }
      tensors.push_back(element.components()[c]);
    }
    components.push_back(join_tensors(tensors));
  }
  return {first.structure(), std::move(components)};
}

}  // namespace

Element stack_elements(const std::vector<Element>& elements) {
  return join(elements, [](const auto& tensors) { return HostTensor::stack(tensors); });
}

Element concatenate_elements(const std::vector<Element>& elements) {
  return join(elements, [](const auto& tensors) { return HostTensor::concatenate(tensors); });
}

Element slice_of(const Element& element, std::int64_t first, std::int64_t count) {
  std::vector<HostTensor> components;
  for (const HostTensor& tensor : element.components()) components.push_back(tensor.slice(first, count));
  return {element.structure(), std::move(components)};
}

// Returns the number of rows of a batch; its components must agree.
std::int64_t rows_of(const Element& element) {
  const std::int64_t rows = element.components().front().rows();
  for (const HostTensor& tensor : element.components()) {
    if (tensor.rows() != rows) {
      throw InvalidArgumentError(
          fmt::format("the components of a batch have {} and {} rows, must be the same", rows, tensor.rows()));
    }
  }
  return rows;
}

void check_batched(const ElementSpec& spec) {
  for (const TensorSpec& component : spec.components) {
    if (component.dimensions.empty()) {
      throw ValueError("the dataset's elements have scalars, which cannot be divided; call batch() on it first");
    }
  }
}

}  // namespace tandem
