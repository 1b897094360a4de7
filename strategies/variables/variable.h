// Distributed variables. Users hold the container; the context decides which of its components a call uses.
//
// Kinds: mirrored (one component per device, kept equal), sync on read (one component per device, combined when read),
// aggregating (one stored tensor that several replicas use; their updates are combined first) and plain (one stored
// tensor, one replica). Strategy::create_variable makes them. Threads: the strategy's own tasks.
//
// A read gives the value at that time: later assignments do not change the tensor. Reading copies nothing; a write that
// meets a tensor still held goes to new memory instead. A program that drops what it has read before it updates the
// variable therefore pays for no copy.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/op.h"
#include "engine/tensor.h"
#include "strategies/base/options.h"
#include "strategies/values/value.h"
#include "strategies/variables/snapshots.h"

namespace tandem {

class Strategy;
class Variable;

// Returns the nearest value that an updated variable may have: see apply_gradients().
using VariableConstraint = std::function<Tensor(const Tensor& value)>;

struct VariableSpec {
  std::string name = "Variable";
  DType dtype = DType::f32;
  Shape shape{};
  std::function<double(std::int64_t element)> initial_value{};  // row-major; empty: zeros
  std::optional<bool> trainable{};                              // default: true, except for sync-on-read variables
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  VariableAggregation aggregation = VariableAggregation::none;
  std::shared_ptr<Variable> colocate_with{};  // the new variable goes to that one's devices
  VariableConstraint constraint{};
};

enum class VariableKind : std::uint8_t { plain, mirrored, sync_on_read, aggregating };
std::string_view name_of(VariableKind kind);

enum class Change : std::uint8_t { assign, add, subtract };
std::string_view name_of(Change change);  // "assign_add()"

class Variable : public std::enable_shared_from_this<Variable> {
 public:
  virtual ~Variable() = default;
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  Strategy& strategy() const { return strategy_; }
  virtual VariableKind kind() const = 0;
  const VariableSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  // "w" for component 0, "w/replica_1" for component 1.
  std::string component_name(int component) const;
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  bool trainable() const;
  VariableAggregation aggregation() const { return spec_.aggregation; }
  const VariableConstraint& constraint() const { return spec_.constraint; }
  std::string text() const;  // "Variable 'w' (mirrored, f32 [2, 3], 2 components)"
  friend std::ostream& operator<<(std::ostream& out, const Variable& variable);

  // How often components have been written to so far: as long as it stays the same, so do the values. Nothing where
  // other workers write to them, too.
  virtual std::optional<std::int64_t> write_count() const { return writes_; }
  // The memory of the components as it is now. Assignments write to it or replace it.
  const std::vector<Tensor>& components() const { return components_; }
  std::vector<Device*> devices() const;  // one per component, in order
  // One component's value at this time, and those of all components.
  virtual Tensor component_value(int component);
  Value::Parts component_values();

  // The memory of the current replica's or update's component, for an op that writes to it; taken anew for every such
  // op. ValueError in a cross-replica context for the kinds with one component per device.
  const Tensor& handle();
  // The value to compute with: that of the current component, copied to the replica's device if it is stored elsewhere.
  // In a cross-replica context it is component 0's, or what read() gives for a sync-on-read variable.
  virtual Tensor value();
  // As value(). Sync-on-read variables are aggregated in a cross-replica context, which is a ValueError with
  // aggregation NONE.
  virtual Tensor read() { return value(); }

  // In a cross-replica context, and outside every scope, all components get the update, and `value` may be per replica.
  // In an update context only the component being updated changes. What happens in a replica context depends on kind
  // and aggregation: see docs/tensorflow.md. Numbers fill the shape. Returns value() as the caller sees it, but in an
  // update context the component itself, which update() regroups to the variable, and in the replica contexts of an
  // aggregating variable one tensor that all replicas share, on their host: their update is one update. ValueError for
  // a tensor of another element type or number of elements, TypeError for a fraction given to a variable of integers.
  Tensor assign(const Value& value) { return change(Change::assign, value); }
  Tensor assign_add(const Value& value) { return change(Change::add, value); }
  Tensor assign_sub(const Value& value) { return change(Change::subtract, value); }

  // Changes the rows that the slices name. An index that names no row ends the run with InvalidArgumentError. In a
  // replica context SUM and MEAN combine the replicas' slices first, and refuse maximum, minimum and replace
  // (NotImplementedError). Sync-on-read variables have no scatter operations (NotImplementedError).
  virtual Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices);
  Tensor scatter_add(const IndexedSlices& slices) { return scatter(kernel::Scatter::add, slices); }
  Tensor scatter_sub(const IndexedSlices& slices) { return scatter(kernel::Scatter::subtract, slices); }
  Tensor scatter_mul(const IndexedSlices& slices) { return scatter(kernel::Scatter::multiply, slices); }
  Tensor scatter_div(const IndexedSlices& slices) { return scatter(kernel::Scatter::divide, slices); }
  Tensor scatter_max(const IndexedSlices& slices) { return scatter(kernel::Scatter::maximum, slices); }
  Tensor scatter_min(const IndexedSlices& slices) { return scatter(kernel::Scatter::minimum, slices); }
  Tensor scatter_update(const IndexedSlices& slices) { return scatter(kernel::Scatter::replace, slices); }

  // Return what a checkpoint stores for this variable, on the host's device, and restore the variable from such a
  // tensor.
  virtual Tensor saved_value();
  virtual void restore(const Tensor& saved);

  // A variable that belongs to this one, such as a moving average's bias: of the same shape and kind, named
  // "<name>/<slot>", not trainable, zero at first. The first call creates it.
  std::shared_ptr<Variable> slot(const std::string& name);

 protected:
  Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components);

  enum class Where : std::uint8_t { cross_replica, replica, update };
  Where where() const;
  int current_component() const;  // of the current replica or update, else 0
  virtual Tensor change(Change change, const Value& value);
  // Returns the result of a change: the component itself in an update context, else its value.
  Tensor changed_component();
  // Change one component by a value of its own.
  void change_component(Change change, int component, const Value& value);
  void scatter_component(kernel::Scatter operation, int component, const IndexedSlices& slices);
  // For kinds that combine the replicas' values first, in a replica context.
  Tensor change_merged(Change change, const Value& value);
  Tensor scatter_merged(kernel::Scatter operation, const IndexedSlices& slices);
  // What all replicas get from such a change as one object; nothing: each gets value(). `device` is the first
  // replica's.
  virtual Value result_for_all(Device& /*device*/) { return {}; }
  Value aggregated(std::string_view call, Strategy& strategy, const Value& merged) const;
  // Throws RuntimeError, naming the call, in a context of a strategy that did not create the variable.
  void check_own_context(std::string_view call) const;
  // Change all components through the strategy's update(), in a cross-replica context.
  void change_all(Change change, const Value& value);
  void scatter_all(kernel::Scatter operation, const Value& slices);

 private:
  // Returns the component's memory for a write: new memory if somebody still holds the value in the present one.
  enum class Contents : bool { replaced, kept };
  const Tensor& writable(int component, Contents contents);

  Strategy& strategy_;
  VariableSpec spec_;
  std::vector<Tensor> components_;
  std::vector<Snapshots> snapshots_;  // one per component
  std::int64_t writes_ = 0;
  std::map<std::string, std::shared_ptr<Variable>> slots_;
};

// Returns the spec with the names and defaults of TensorFlow's variable creation. ValueError for what TensorFlow
// refuses.
VariableSpec checked_spec(VariableSpec spec);
// Whether variables of this type can aggregate by MEAN, as those of floating-point types can.
bool has_mean(DType dtype);

std::vector<const Variable*> pointers_to(const std::vector<std::shared_ptr<Variable>>& variables);

// Returns a sync-on-read variable as the value that each replica has, and any other value as it is.
Value opened_if_sync_on_read(const Value& value);
// Returns the name by which the replicas' variables are matched: "foo/bar" for "foo_1/bar_1".
std::string canonical_name(std::string_view name);

// Creates a variable under the current strategy: tf.Variable.
std::shared_ptr<Variable> create_variable(const VariableSpec& spec);

}  // namespace tandem
