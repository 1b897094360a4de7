// From one value per replica to one value of the strategy, and back.
#pragma once

#include "strategies/value.h"

namespace tandem {

// Combines what the replicas returned, in replica order. Lists, tuples and maps are regrouped element by element
// (AssertionError when their structures differ). A leaf that is the identical object in all of them stays bare unless
// `always_wrap`; other leaves become per-replica values. With one part the part itself is returned.
Value regroup(const Value::Parts& parts, bool always_wrap = false);

// Part `replica` of every distributed leaf. Variables and other leaves stay as they are.
Value select_replica(int replica, const Value& value);

// Every leaf, in order; the structure is kept. `function` gets leaves that are not lists, tuples or maps.
template <typename Function>
Value map_structure(const Value& value, const Function& function) {
  if (value.is(ValueKind::list) || value.is(ValueKind::tuple)) {
    Value::Parts parts;
    for (const Value& part : value.parts()) parts.push_back(map_structure(part, function));
    return value.is(ValueKind::list) ? Value::list(std::move(parts)) : Value::tuple(std::move(parts));
  }
  if (value.is(ValueKind::map)) {
    Value::Fields fields;
    for (const auto& [name, part] : value.fields()) fields.emplace(name, map_structure(part, function));
    return Value::map(std::move(fields));
  }
  return function(value);
}

}  // namespace tandem
