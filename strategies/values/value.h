// What strategy calls take and give back: tensors, numbers and texts, nested in lists, tuples and maps, and values
// distributed over replicas.
//
// A Value is a handle; copies share the object, and sharing is what "identical" means. As in TensorFlow, replicas that
// return one and the same object (a captured constant, a literal) return a shared value, while values that are merely
// equal stay per replica. C++ cannot see that a number was a literal, so write Value::literal(5.0) for one.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.h"

namespace tandem {

class Variable;

enum class ValueKind : std::uint8_t {
  none,
  number,
  text,
  tensor,
  sparse,
  list,
  tuple,
  map,
  per_replica,
  mirrored,
  variable,
};
std::string_view name_of(ValueKind kind);

// tf.IndexedSlices: rows of a tensor of shape `dense_shape` whose other rows are zero. Row i of `values` [n, ...]
// stands at row indices[i] (i64, [n]); rows named twice add up. Both tensors are on one device.
struct IndexedSlices {
  Tensor values{}, indices{};
  Shape dense_shape{};
};

class Value {
 public:
  using Parts = std::vector<Value>;
  using Fields = std::map<std::string, Value>;

  Value() = default;                // nothing: Python's None
  Value(double number);             // NOLINT(google-explicit-constructor): a number is a value
  template <std::integral Integer>  // a number that is_integer()
  Value(Integer number)             // NOLINT(google-explicit-constructor)
      : Value(integer(static_cast<std::int64_t>(number))) {}
  Value(Tensor tensor);              // NOLINT(google-explicit-constructor)
  Value(std::string text);           // NOLINT(google-explicit-constructor)
  Value(IndexedSlices slices);       // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<Variable>);  // NOLINT(google-explicit-constructor)

  // A number written in the program: all literals of one value are the same object.
  static Value literal(double number);
  static Value integer(std::int64_t number);
  static Value list(Parts parts);
  static Value tuple(Parts parts);
  // A map, or with a type name a structure of that type: Python's dict and namedtuple.
  static Value map(Fields fields, std::string type = {});
  static Value per_replica(Parts parts);  // one part for each local replica
  static Value mirrored(Parts parts);     // the same, equal by contract
  // The same with the name of each part's device: for parts that are on no device of their own, such as numbers.
  static Value per_replica(Parts parts, std::vector<std::string> places);
  static Value mirrored(Parts parts, std::vector<std::string> places);

  ValueKind kind() const;
  bool is(ValueKind kind) const { return this->kind() == kind; }
  bool is_distributed() const { return is(ValueKind::per_replica) || is(ValueKind::mirrored); }
  bool is_nest() const { return is(ValueKind::list) || is(ValueKind::tuple) || is(ValueKind::map); }
  bool is_identical(const Value& other) const;

  // Each throws TypeError, naming both kinds, when the value is of another one.
  double number() const;
  bool is_integer() const;  // of numbers: made from an integer
  const std::string& text() const;
  const Tensor& tensor() const;
  const IndexedSlices& slices() const;
  const Parts& parts() const;                      // of lists, tuples and distributed values
  const std::vector<std::string>& places() const;  // of distributed values: the devices of the parts, if named
  const Fields& fields() const;
  const std::string& type_name() const;  // of maps; empty for a plain one
  const std::shared_ptr<Variable>& variable() const;

 private:
  struct Node;
  explicit Value(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Value nest(ValueKind kind, Parts parts, std::vector<std::string> places = {});
  std::shared_ptr<const Node> node_;
};

}  // namespace tandem
