// The rows of batched elements. Internal to strategies/input.
#pragma once

#include "strategies/input/element.h"

namespace tandem {

// Combine elements of one structure, component by component, along a new axis or along the first one.
// InvalidArgumentError for different structures, types or shapes.
Element stack_elements(const std::vector<Element>& elements);
Element concatenate_elements(const std::vector<Element>& elements);

Element slice_of(const Element& element, std::int64_t first, std::int64_t count);
std::int64_t rows_of(const Element& element);  // InvalidArgumentError when components differ
void check_batched(const ElementSpec& spec);   // ValueError when there are scalars

}  // namespace tandem
