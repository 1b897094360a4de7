#include "strategies/servers/value_message.h"

#include <fmt/format.h>

#include <limits>

#include "engine/worker.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategy/regroup.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {
namespace {

void check_has_memory(const Tensor& tensor) {
  if (!tensor) throw TypeError("a tensor without memory cannot be sent to another worker");
}

Tensor own_tensor(Worker& worker, const Tensor& tensor) {
  check_has_memory(tensor);
  Tensor here = tensor.device().worker() == worker.index() ? tensor : copy_on(worker.cpu(), tensor);
  here.device().compute_stream().record().synchronize();
  return here;
}

void put_variable(ByteWriter& bytes, const Variable& variable, const Strategy& strategy) {
  const auto* stored = dynamic_cast<const StoredVariable*>(&variable);
  if (stored == nullptr || stored->shared_name().empty() || &variable.strategy() != &strategy) {
    throw TypeError(
        fmt::format("{} cannot be sent to another worker: only its own strategy object finds it", variable.text()));
  }
  if (variable.constraint()) {
    throw TypeError(
        fmt::format("{} cannot be sent to another worker: its constraint is a function of this one", variable.text()));
  }
  const VariableSpec& spec = variable.spec();
  bytes.put_text(stored->shared_name()).put_text(spec.name).put(spec.dtype).put(spec.shape).put(spec.trainable);
  bytes.put(spec.synchronization).put(spec.aggregation);
}

Value get_variable(ByteReader& bytes, const ValueSource& source) {
  const std::string shared_name = bytes.get_text();
  VariableSpec spec{.name = bytes.get_text()};
  spec.dtype = bytes.get<DType>();
  spec.shape = bytes.get<Shape>();
  spec.trainable = bytes.get<std::optional<bool>>();
  spec.synchronization = bytes.get<VariableSynchronization>();
  spec.aggregation = bytes.get<VariableAggregation>();
  return source.variable(shared_name, spec);
}

void put_parts(ByteWriter& bytes, std::vector<Tensor>& tensors, const Value::Parts& parts, const Strategy& strategy) {
  bytes.put(static_cast<std::uint64_t>(parts.size()));
  for (const Value& part : parts) put_value(bytes, tensors, part, strategy);
}

Value::Parts get_parts(ByteReader& bytes, const ValueSource& source, std::size_t part) {
  Value::Parts parts(static_cast<std::size_t>(bytes.get<std::uint64_t>()));
  for (Value& element : parts) element = get_value(bytes, source, part);
  return parts;
}

Value get_distributed(ByteReader& bytes, const ValueSource& source, ValueKind kind) {
  std::vector<std::string> places(static_cast<std::size_t>(bytes.get<std::uint64_t>()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = bytes.get_text();
    if (source.place) places[i] = source.place(i);
  }
  Value::Parts parts(static_cast<std::size_t>(bytes.get<std::uint64_t>()));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = get_value(bytes, source, i);
  return kind == ValueKind::mirrored ? Value::mirrored(std::move(parts), std::move(places))
                                     : Value::per_replica(std::move(parts), std::move(places));
}

Value get_map(ByteReader& bytes, const ValueSource& source, std::size_t part) {
  std::string type = bytes.get_text();
  Value::Fields fields;
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) {
    std::string name = bytes.get_text();
    fields.emplace(std::move(name), get_value(bytes, source, part));
  }
  return Value::map(std::move(fields), std::move(type));
}

}  // namespace

Value ready_to_send(Worker& worker, const Value& value) {
  return map_structure(value, [&](const Value& leaf) -> Value {
    if (leaf.is(ValueKind::tensor)) return own_tensor(worker, leaf.tensor());
    if (leaf.is(ValueKind::sparse)) {
      const IndexedSlices& slices = leaf.slices();
      return IndexedSlices{own_tensor(worker, slices.values), own_tensor(worker, slices.indices), slices.dense_shape};
    }
    if (!leaf.is_distributed()) return leaf;
    Value::Parts parts;
    for (const Value& part : leaf.parts()) parts.push_back(ready_to_send(worker, part));
    return leaf.is(ValueKind::mirrored) ? Value::mirrored(std::move(parts), leaf.places())
                                        : Value::per_replica(std::move(parts), leaf.places());
  });
}

void put_value(ByteWriter& bytes, std::vector<Tensor>& tensors, const Value& value, const Strategy& strategy) {
  bytes.put(value.kind());
  switch (value.kind()) {
    case ValueKind::none:
      return;
    case ValueKind::number:
      bytes.put(value.is_integer());
      value.is_integer() ? bytes.put(value.integer_number()) : bytes.put(value.number());
      return;
    case ValueKind::text:
      bytes.put_text(value.text());
      return;
    case ValueKind::tensor:
      check_has_memory(value.tensor());
      tensors.push_back(value.tensor());
      return;
    case ValueKind::sparse:
      check_has_memory(value.slices().values);
      check_has_memory(value.slices().indices);
      tensors.push_back(value.slices().values);
      tensors.push_back(value.slices().indices);
      bytes.put(value.slices().dense_shape);
      return;
    case ValueKind::list:
    case ValueKind::tuple:
      return put_parts(bytes, tensors, value.parts(), strategy);
    case ValueKind::map:
      bytes.put_text(value.type_name()).put(static_cast<std::uint64_t>(value.fields().size()));
      for (const auto& [name, field] : value.fields()) {
        bytes.put_text(name);
        put_value(bytes, tensors, field, strategy);
      }
      return;
    case ValueKind::per_replica:
    case ValueKind::mirrored:
      bytes.put(static_cast<std::uint64_t>(value.places().size()));
      for (const std::string& place : value.places()) bytes.put_text(place);
      return put_parts(bytes, tensors, value.parts(), strategy);
    case ValueKind::variable:
      return put_variable(bytes, *value.variable(), strategy);
  }
  TANDEM_UNREACHABLE("a ValueKind outside its enumerators");
}

Value get_value(ByteReader& bytes, const ValueSource& source, std::size_t part) {
  const auto kind = bytes.get<ValueKind>();
  switch (kind) {
    case ValueKind::none:
      return {};
    case ValueKind::number:
      return bytes.get<bool>() ? Value::integer(bytes.get<std::int64_t>()) : Value(bytes.get<double>());
    case ValueKind::text:
      return bytes.get_text();
    case ValueKind::tensor:
      return source.next_tensor(part);
    case ValueKind::sparse: {
      Tensor values = source.next_tensor(part);
      Tensor indices = source.next_tensor(part);
      return IndexedSlices{std::move(values), std::move(indices), bytes.get<Shape>()};
    }
    case ValueKind::list:
      return Value::list(get_parts(bytes, source, part));
    case ValueKind::tuple:
      return Value::tuple(get_parts(bytes, source, part));
    case ValueKind::map:
      return get_map(bytes, source, part);
    case ValueKind::per_replica:
    case ValueKind::mirrored:
      return get_distributed(bytes, source, kind);
    case ValueKind::variable:
      return get_variable(bytes, source);
  }
  TANDEM_UNREACHABLE("a ValueKind outside its enumerators");
}

}  // namespace tandem
