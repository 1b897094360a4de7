// What a step of a case came to.
#pragma once

#include "strategies/cluster/cluster_spec.h"
#include "tests/conformance/tf/case.h"

namespace tandem {

// What the call returns, or the error it throws.
template <typename Call>
Json outcome_of(const Call& call) {
  Json value;
  const Json error = error_of([&] { value = call(); });
  return error.is_null() ? value : error;
}

inline Json dict_of(const ClusterSpec& cluster) {
  return Json::parse(cluster.as_dict());
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace tandem
