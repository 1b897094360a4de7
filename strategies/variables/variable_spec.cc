#include <fmt/format.h>

#include <cctype>

#include "strategies/base/errors.h"
#include "strategies/variables/variable.h"

namespace tandem {

bool has_mean(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

VariableSpec checked_spec(VariableSpec spec) {
  if (spec.name.empty()) spec.name = "Variable";
  if (spec.synchronization == VariableSynchronization::none) {
    throw ValueError(
        fmt::format("variable '{}': NONE variable synchronization has no meaning for a distributed "
                    "variable; choose AUTO, ON_WRITE or ON_READ",
                    spec.name));
  }
  if (spec.aggregation == VariableAggregation::mean && !has_mean(spec.dtype)) {
    throw ValueError(fmt::format("variable '{}': aggregation MEAN and a non-floating dtype, {}, cannot go together",
                                 spec.name, tandem::name_of(spec.dtype)));
  }
  return spec;
}

// Leaves out every "_<digit>" before a slash or at the end.
std::string canonical_name(std::string_view name) {
  if (name.empty()) return "Variable";
  std::string canonical;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_suffix = name[i] == '_' && i + 1 < name.size() &&
                           std::isdigit(static_cast<unsigned char>(name[i + 1])) != 0 &&
                           (i + 2 == name.size() || name[i + 2] == '/');
    if (is_suffix) {
      ++i;
    } else {
      canonical += name[i];
    }
  }
  return canonical;
}

}  // namespace tandem
