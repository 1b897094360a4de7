#include "strategies/regroup.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/errors.h"

namespace tandem {
namespace {

void check_same_structure(const Value::Parts& parts) {
  const Value& first = parts.front();
  for (const Value& part : parts) {
    if (part.kind() != first.kind()) {
      throw AssertionError(fmt::format("replicas returned different structures: a {} and a {}", name_of(first.kind()),
                                       name_of(part.kind())));
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

Value regroup_leaf(const Value::Parts& parts, bool always_wrap) {
  const bool all_identical =
      std::all_of(parts.begin(), parts.end(), [&](const Value& part) { return part.is_identical(parts.front()); });
  if (all_identical && (!always_wrap || parts.front().is(ValueKind::variable))) return parts.front();
  return Value::per_replica(parts);
}

}  // namespace

Value regroup(const Value::Parts& parts, bool always_wrap) {
  TANDEM_CHECK(!parts.empty(), "nothing to regroup");
  if (parts.size() == 1) return parts.front();
  const Value& first = parts.front();
  if (!first.is_nest()) return regroup_leaf(parts, always_wrap);
  check_same_structure(parts);
  if (first.is(ValueKind::map)) {
    Value::Fields fields;
    for (const auto& [name, value] : first.fields()) {
      Value::Parts same;
      for (const Value& part : parts) same.push_back(part.fields().at(name));
      fields.emplace(name, regroup(same, always_wrap));
    }
    return Value::map(std::move(fields));
  }
  Value::Parts elements;
  for (std::size_t i = 0; i < first.parts().size(); ++i) {
    Value::Parts same;
    for (const Value& part : parts) same.push_back(part.parts()[i]);
    elements.push_back(regroup(same, always_wrap));
  }
  return first.is(ValueKind::list) ? Value::list(std::move(elements)) : Value::tuple(std::move(elements));
}

Value select_replica(int replica, const Value& value) {
  return map_structure(value, [replica](const Value& leaf) {
    return leaf.is_distributed() ? leaf.parts().at(static_cast<std::size_t>(replica)) : leaf;
  });
}

}  // namespace tandem
