// The values that strategy calls take and return: tensors, numbers and texts, nested in lists, tuples and maps, and
// values distributed over replicas.
//
// A Value is a handle. Copies share the object, and two handles of one object are identical. As in TensorFlow, replicas
// that return one and the same object (a captured constant, a literal) return a shared value, whereas values that are
// merely equal stay per replica. C++ cannot see that a number was a literal, so write Value::literal(5.0) for one.
//
// Threads: a Value may be shared; it never changes.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
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
std::string with_article(ValueKind kind);  // "a tensor", "an IndexedSlices", "nothing"

// tf.IndexedSlices: some rows of a tensor of shape `dense_shape` whose other rows are zero. Row i of `values` [n, ...]
// is row indices[i] (i64, [n]) of that tensor; rows named twice add up. Both tensors are on one device.
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

  // A number written in the program. All literals of one value are the same object.
  static Value literal(double number);
  static Value integer(std::int64_t number);
  static Value list(Parts parts);
  static Value tuple(Parts parts);
  // A map, or a structure of the type that is named: Python's dict and namedtuple.
  static Value map(Fields fields, std::string type = {});
  static Value per_replica(Parts parts);  // one part for each local replica
  static Value mirrored(Parts parts);     // as per_replica, with parts that are equal by contract
  // Also name each part's device, for parts that are on no device of their own, such as numbers. ValueError unless
  // there are as many names as parts.
  static Value per_replica(Parts parts, std::vector<std::string> places);
  static Value mirrored(Parts parts, std::vector<std::string> places);

  ValueKind kind() const;
  bool is(ValueKind kind) const { return this->kind() == kind; }
  bool is_distributed() const { return is(ValueKind::per_replica) || is(ValueKind::mirrored); }
  bool is_nest() const { return is(ValueKind::list) || is(ValueKind::tuple) || is(ValueKind::map); }
  bool is_identical(const Value& other) const;
  // Whether IndexedSlices are among the leaves.
  bool contains_indexed_slices() const;

  // Each throws TypeError, naming both kinds, when the value is of another kind.
  double number() const;                // the nearest to an integer beyond 2^53
  bool is_integer() const;              // of numbers: made from an integer
  std::int64_t integer_number() const;  // exactly; TypeError for another number
  const std::string& text() const;
  const Tensor& tensor() const;
  const IndexedSlices& slices() const;
  const Parts& parts() const;                      // for lists, tuples and distributed values
  const std::vector<std::string>& places() const;  // for distributed values: the devices of the parts, if named
  const Fields& fields() const;
  const std::string& type_name() const;  // for maps; empty for a plain one
  const std::shared_ptr<Variable>& variable() const;

  // Writes text_of(value).
  friend std::ostream& operator<<(std::ostream& out, const Value& value);

 private:
  struct Node;
  explicit Value(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Value nest(ValueKind kind, Parts parts, std::vector<std::string> places = {});
  std::shared_ptr<const Node> node_;
};

// The value as Python would print it: ("a", [1, {x: PerReplica[2, 3]}]). Tensors show their type, shape and device, not
// their elements.
std::string text_of(const Value& value);

}  // namespace tandem
