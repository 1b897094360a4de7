#include "strategies/parallel/stages/first_values.h"

#include <algorithm>
#include <memory>

namespace tandem {

FirstValues joined(std::vector<ValuesAt> parts) {
  if (std::ranges::none_of(parts, [](const ValuesAt& part) { return static_cast<bool>(part.values); })) return {};
  return [parts = std::make_shared<const std::vector<ValuesAt>>(std::move(parts))](std::int64_t element) {
    const ValuesAt& part = *std::prev(std::ranges::upper_bound(*parts, element, {}, &ValuesAt::first));
    return part.values ? part.values(element - part.first) : 0.0;
  };
}

}  // namespace tandem
