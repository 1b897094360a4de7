// Turns one value per replica into one value of the strategy, and back.
#pragma once

#include "strategies/values/value.h"

namespace tandem {

// Combines the replicas' results, in replica order. Lists, tuples and maps are regrouped element by element
// (AssertionError when their structures differ). A leaf that is the identical object in all of them stays bare unless
// `always_wrap` is set; other leaves become per-replica values. With one part that part itself is returned,
// unless `always_wrap` is set.
Value regroup(const Value::Parts& parts, bool always_wrap = false);

// Combines results that are equal by contract: like regroup(), but with mirrored leaves.
Value regroup_mirrored(const Value::Parts& parts);

// Puts a tuple (TensorFlow 1: a list) of the parts at every leaf, also where there is one part. A leaf that is the
// identical object in all of them appears once; a variable with a component per device appears as its components.
Value regroup_ungrouped(const Value::Parts& parts, bool as_lists = false);

// Returns the value with part `replica` in place of every distributed leaf; variables and other leaves stay as they
// are. Throws ValueError for a leaf without such a part.
Value select_replica(int replica, const Value& value);

// Does the same for values without per-replica leaves (TypeError).
Value select_replica_mirrored(int replica, const Value& value);

// Calls `function` for every leaf, in order, and returns the results in the same structure. Leaves are the values that
// are not lists, tuples or maps.
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
    return Value::map(std::move(fields), value.type_name());
  }
  return function(value);
}

}  // namespace tandem
