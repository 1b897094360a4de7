#include "strategies/strategy/regroup.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/strategy.h"

namespace tandem {
namespace {

void check_same_structure(const Value::Parts& parts) {
  const Value& first = parts.front();
  for (const Value& part : parts) {
    if (part.kind() != first.kind()) {
      throw AssertionError(fmt::format("replicas returned different structures: {} and {}", with_article(first.kind()),
                                       with_article(part.kind())));
    }
    if (!first.is(ValueKind::map) && part.parts().size() != first.parts().size()) {
      throw AssertionError(fmt::format("replicas returned a {} of {} and of {} elements", name_of(first.kind()),
                                       first.parts().size(), part.parts().size()));
    }
    if (first.is(ValueKind::map) &&
        !std::equal(first.fields().begin(), first.fields().end(), part.fields().begin(), part.fields().end(),
                    [](const auto& a, const auto& b) { return a.first == b.first; })) {
      throw AssertionError("replicas returned maps with different keys");
    }
  }
}

enum class Wrap : std::uint8_t { per_replica, always_per_replica, mirrored, tuple, list };

bool is_sequence(Wrap wrap) {
  return wrap == Wrap::tuple || wrap == Wrap::list;
}

// Returns whether a value is a variable with a component per device.
bool is_replicated(const Value& value) {
  if (!value.is(ValueKind::variable)) return false;
  const VariableKind kind = value.variable()->kind();
  return kind == VariableKind::mirrored || kind == VariableKind::sync_on_read;
}

// Returns the variable whose components, in order, are the parts; null if there is none.
std::shared_ptr<Variable> container_of(const Value::Parts& parts) {
  const Mode* mode = current_mode();
  if (!mode || !parts.front().is(ValueKind::tensor)) return nullptr;
  const Value container = mode->strategy->extended().value_container(parts.front());
  if (!is_replicated(container)) return nullptr;
  const std::vector<Tensor>& components = container.variable()->components();
  if (components.size() != parts.size()) return nullptr;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is(ValueKind::tensor) || !parts[i].tensor().is_same(components[i])) return nullptr;
    if (parts[i].tensor().has_lease()) return nullptr;  // a snapshot, not the component
  }
  return container.variable();
}

// Returns TensorFlow's local results of a regrouped leaf: one object in all parts counts once, and a variable with
// several components as these.
Value sequence_of(const Value::Parts& parts, bool all_identical, Wrap wrap) {
  Value::Parts results = all_identical ? Value::Parts{parts.front()} : parts;
  if (all_identical && is_replicated(parts.front())) results = parts.front().variable()->component_values();
  return wrap == Wrap::list ? Value::list(std::move(results)) : Value::tuple(std::move(results));
}

Value regroup_leaf(const Value::Parts& parts, Wrap wrap) {
  const bool all_identical =
      std::all_of(parts.begin(), parts.end(), [&](const Value& part) { return part.is_identical(parts.front()); });
  if (is_sequence(wrap)) return sequence_of(parts, all_identical, wrap);
  if (all_identical && (wrap != Wrap::always_per_replica || parts.front().is(ValueKind::variable))) {
    return parts.front();
  }
  if (const std::shared_ptr<Variable> container = container_of(parts)) return container;
  return wrap == Wrap::mirrored ? Value::mirrored(parts) : Value::per_replica(parts);
}

Value regroup_as(const Value::Parts& parts, Wrap wrap) {
  TANDEM_REQUIRE(!parts.empty(), "nothing to regroup");
  const Value& first = parts.front();
  if (parts.size() == 1 && !first.is_nest() && !is_sequence(wrap) && wrap != Wrap::always_per_replica) {
    const std::shared_ptr<Variable> container = container_of(parts);
    return container ? Value(container) : first;
  }
  if (!first.is_nest()) return regroup_leaf(parts, wrap);
  check_same_structure(parts);
  if (first.is(ValueKind::map)) {
    Value::Fields fields;
    for (const auto& [name, value] : first.fields()) {
      Value::Parts same;
      for (const Value& part : parts) same.push_back(part.fields().at(name));
      fields.emplace(name, regroup_as(same, wrap));
    }
    return Value::map(std::move(fields), first.type_name());
  }
  Value::Parts elements;
  for (std::size_t i = 0; i < first.parts().size(); ++i) {
    Value::Parts same;
    for (const Value& part : parts) same.push_back(part.parts()[i]);
    elements.push_back(regroup_as(same, wrap));
  }
  return first.is(ValueKind::list) ? Value::list(std::move(elements)) : Value::tuple(std::move(elements));
}

}  // namespace

Value regroup(const Value::Parts& parts, bool always_wrap) {
  return regroup_as(parts, always_wrap ? Wrap::always_per_replica : Wrap::per_replica);
}

Value regroup_mirrored(const Value::Parts& parts) {
  return regroup_as(parts, Wrap::mirrored);
}

Value regroup_ungrouped(const Value::Parts& parts, bool as_lists) {
  return regroup_as(parts, as_lists ? Wrap::list : Wrap::tuple);
}

namespace {

// Returns a distributed leaf's part for a replica; any other leaf unchanged.
Value part_of(const Value& leaf, int replica) {
  if (!leaf.is_distributed()) return leaf;
  const auto index = static_cast<std::size_t>(replica);
  if (index >= leaf.parts().size()) {
    throw ValueError(
        fmt::format("a {} of {} parts has none for replica {}", name_of(leaf.kind()), leaf.parts().size(), replica));
  }
  return leaf.parts()[index];
}

}  // namespace

Value select_replica_mirrored(int replica, const Value& value) {
  return map_structure(value, [replica](const Value& leaf) {
    if (leaf.is(ValueKind::per_replica)) throw TypeError("expected a mirrored value, found one per replica");
    return part_of(leaf, replica);
  });
}

Value select_replica(int replica, const Value& value) {
  return map_structure(value, [replica](const Value& leaf) { return part_of(leaf, replica); });
}

}  // namespace tandem
