// First values of parameters that lie one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tandem {

using FirstValues = std::function<double(std::int64_t element)>;  // empty: zeros

struct ValuesAt {
  std::int64_t first = 0;  // where their elements begin
  FirstValues values{};
};

// Returns the values of all elements; `parts` are in the order of their elements. Empty if all parts are zeros.
FirstValues joined(std::vector<ValuesAt> parts);

}  // namespace tandem
