// The text form of values.
#include <fmt/format.h>

#include <ostream>

#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {
namespace {

std::string enclosed(std::string_view open, const Value::Parts& parts, std::string_view close) {
  std::string text(open);
  for (std::size_t i = 0; i < parts.size(); ++i) text.append(i == 0 ? "" : ", ").append(text_of(parts[i]));
  return text.append(close);
}

std::string text_of_map(const Value& value) {
  std::string text = value.type_name() + "{";
  for (const auto& [name, part] : value.fields()) {
    if (text.back() != '{') text += ", ";
    text.append(name).append(": ").append(text_of(part));
  }
  return text + "}";
}

std::string text_of_slices(const IndexedSlices& slices) {
  return fmt::format("IndexedSlices({}, indices {}, dense {})", slices.values.text(), slices.indices.shape().text(),
                     slices.dense_shape.text());
}

}  // namespace

std::string text_of(const Value& value) {
  switch (value.kind()) {
    case ValueKind::none:
      return "None";
    case ValueKind::number:
      return fmt::format("{}", value.number());
    case ValueKind::text:
      return '"' + value.text() + '"';
    case ValueKind::tensor:
      return value.tensor().text();
    case ValueKind::sparse:
      return text_of_slices(value.slices());
    case ValueKind::list:
      return enclosed("[", value.parts(), "]");
    case ValueKind::tuple:
      return enclosed("(", value.parts(), ")");
    case ValueKind::map:
      return text_of_map(value);
    case ValueKind::per_replica:
      return enclosed("PerReplica[", value.parts(), "]");
    case ValueKind::mirrored:
      return enclosed("Mirrored[", value.parts(), "]");
    case ValueKind::variable:
      return value.variable()->text();
  }
  TANDEM_UNREACHABLE("a ValueKind outside its enumerators");
}

std::ostream& operator<<(std::ostream& out, const Value& value) {
  return out << text_of(value);
}

}  // namespace tandem
