#include "strategies/values/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {

struct Value::Node {
  ValueKind kind = ValueKind::none;
  bool is_literal = false, is_integer = false;
  double number = 0;
  std::int64_t integer = 0;  // where is_integer
  std::string text{};
  Tensor tensor{};
  IndexedSlices slices{};
  Parts parts{};
  std::vector<std::string> places{};
  Fields fields{};
  std::shared_ptr<Variable> variable{};
};

namespace {

[[noreturn]] void wrong_kind(ValueKind wanted, ValueKind found) {
  throw TypeError(fmt::format("expected a value that is {}, found {}", with_article(wanted), with_article(found)));
}

}  // namespace

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::none:
      return "none";
    case ValueKind::number:
      return "number";
    case ValueKind::text:
      return "text";
    case ValueKind::tensor:
      return "tensor";
    case ValueKind::sparse:
      return "IndexedSlices";
    case ValueKind::list:
      return "list";
    case ValueKind::tuple:
      return "tuple";
    case ValueKind::map:
      return "map";
    case ValueKind::per_replica:
      return "per-replica value";
    case ValueKind::mirrored:
      return "mirrored value";
    case ValueKind::variable:
      return "variable";
  }
  TANDEM_UNREACHABLE("a ValueKind outside its enumerators");
}

std::string with_article(ValueKind kind) {
  if (kind == ValueKind::none) return "nothing";
  return fmt::format("{} {}", kind == ValueKind::sparse ? "an" : "a", name_of(kind));
}

Value::Value(double number) : node_(std::make_shared<Node>(Node{.kind = ValueKind::number, .number = number})) {}
Value::Value(Tensor tensor)
    : node_(std::make_shared<Node>(Node{.kind = ValueKind::tensor, .tensor = std::move(tensor)})) {}
Value::Value(std::string text)
    : node_(std::make_shared<Node>(Node{.kind = ValueKind::text, .text = std::move(text)})) {}
Value::Value(IndexedSlices slices)
    : node_(std::make_shared<Node>(Node{.kind = ValueKind::sparse, .slices = std::move(slices)})) {}
Value::Value(std::shared_ptr<Variable> variable)
    : node_(std::make_shared<Node>(Node{.kind = ValueKind::variable, .variable = std::move(variable)})) {}

Value Value::literal(double number) {
  return Value(std::make_shared<Node>(Node{.kind = ValueKind::number, .is_literal = true, .number = number}));
}

Value Value::integer(std::int64_t number) {
  return Value(std::make_shared<Node>(
      Node{.kind = ValueKind::number, .is_integer = true, .number = static_cast<double>(number), .integer = number}));
}

Value Value::nest(ValueKind kind, Parts parts, std::vector<std::string> places) {
  if (!places.empty() && places.size() != parts.size()) {
    throw ValueError(fmt::format("a value of {} parts names {} devices", parts.size(), places.size()));
  }
  return Value(std::make_shared<Node>(Node{.kind = kind, .parts = std::move(parts), .places = std::move(places)}));
}
Value Value::list(Parts parts) {
  return nest(ValueKind::list, std::move(parts));
}
Value Value::tuple(Parts parts) {
  return nest(ValueKind::tuple, std::move(parts));
}
Value Value::per_replica(Parts parts) {
  return nest(ValueKind::per_replica, std::move(parts));
}
Value Value::mirrored(Parts parts) {
  return nest(ValueKind::mirrored, std::move(parts));
}
Value Value::per_replica(Parts parts, std::vector<std::string> places) {
  return nest(ValueKind::per_replica, std::move(parts), std::move(places));
}
Value Value::mirrored(Parts parts, std::vector<std::string> places) {
  return nest(ValueKind::mirrored, std::move(parts), std::move(places));
}
Value Value::map(Fields fields, std::string type) {
  return Value(
      std::make_shared<Node>(Node{.kind = ValueKind::map, .text = std::move(type), .fields = std::move(fields)}));
}

ValueKind Value::kind() const {
  return node_ ? node_->kind : ValueKind::none;
}

bool Value::is_identical(const Value& other) const {
  if (node_ == other.node_) return true;
  if (!node_ || !other.node_ || node_->kind != other.node_->kind) return false;
  switch (node_->kind) {
    case ValueKind::number:
      return node_->is_literal && other.node_->is_literal && node_->number == other.node_->number;
    case ValueKind::tensor:
      return node_->tensor.is_same(other.node_->tensor);
    case ValueKind::sparse:
      return node_->slices.values.is_same(other.node_->slices.values) &&
             node_->slices.indices.is_same(other.node_->slices.indices);
    case ValueKind::variable:
      return node_->variable == other.node_->variable;
    case ValueKind::none:
      return true;
    default:
      return false;
  }
}

bool Value::contains_indexed_slices() const {
  const auto contains = [](const Value& part) { return part.contains_indexed_slices(); };
  switch (kind()) {
    case ValueKind::sparse:
      return true;
    case ValueKind::list:
    case ValueKind::tuple:
    case ValueKind::per_replica:
    case ValueKind::mirrored:
      return std::any_of(node_->parts.begin(), node_->parts.end(), contains);
    case ValueKind::map:
      return std::any_of(node_->fields.begin(), node_->fields.end(),
                         [&](const auto& field) { return contains(field.second); });
    default:
      return false;
  }
}

double Value::number() const {
  if (!is(ValueKind::number)) wrong_kind(ValueKind::number, kind());
  return node_->number;
}
bool Value::is_integer() const {
  if (!is(ValueKind::number)) wrong_kind(ValueKind::number, kind());
  return node_->is_integer;
}
std::int64_t Value::integer_number() const {
  if (!is_integer()) throw TypeError(fmt::format("expected an integer, found {}", node_->number));
  return node_->integer;
}
const std::string& Value::text() const {
  if (!is(ValueKind::text)) wrong_kind(ValueKind::text, kind());
  return node_->text;
}
const Tensor& Value::tensor() const {
  if (!is(ValueKind::tensor)) wrong_kind(ValueKind::tensor, kind());
  return node_->tensor;
}
const IndexedSlices& Value::slices() const {
  if (!is(ValueKind::sparse)) wrong_kind(ValueKind::sparse, kind());
  return node_->slices;
}
const std::string& Value::type_name() const {
  if (!is(ValueKind::map)) wrong_kind(ValueKind::map, kind());
  return node_->text;
}
const Value::Parts& Value::parts() const {
  if (!is_distributed() && !is(ValueKind::list) && !is(ValueKind::tuple)) wrong_kind(ValueKind::tuple, kind());
  return node_->parts;
}
const std::vector<std::string>& Value::places() const {
  if (!is_distributed()) wrong_kind(ValueKind::per_replica, kind());
  return node_->places;
}
const Value::Fields& Value::fields() const {
  if (!is(ValueKind::map)) wrong_kind(ValueKind::map, kind());
  return node_->fields;
}
const std::shared_ptr<Variable>& Value::variable() const {
  if (!is(ValueKind::variable)) wrong_kind(ValueKind::variable, kind());
  return node_->variable;
}

}  // namespace tandem
