// What a step of a case came to.
#pragma once

#include "tests/conformance/tf/case.h"

namespace tandem {

// What the call returns, or the error it throws.
template <typename Call>
Json outcome_of(const Call& call) {
  Json value;
  const Json error = error_of([&] { value = call(); });
  return error.is_null() ? value : error;
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace tandem
