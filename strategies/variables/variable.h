// Distributed variables. What a user sees is the container; it stands for a component that depends on the context.
//
// Kinds: mirrored (a component a device, kept equal), sync on read (a component a device, combined when read),
// aggregating (one stored tensor that several replicas use; updates are combined first) and plain (one stored tensor,
// one replica). Made by Strategy::create_variable. Threads: those of the strategy's own tasks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/op.h"
#include "engine/tensor.h"
#include "strategies/base/options.h"
#include "strategies/values/value.h"

namespace tandem {

class Strategy;
class Variable;

struct VariableSpec {
  std::string name = "Variable";
  DType dtype = DType::f32;
  Shape shape{};
  std::function<double(std::int64_t element)> initial_value{};  // row-major; empty: zeros
  std::optional<bool> trainable{};                              // by default true, but for sync-on-read variables
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  VariableAggregation aggregation = VariableAggregation::none;
  std::shared_ptr<Variable> colocate_with{};  // stands where that one stands
};

enum class VariableKind : std::uint8_t { plain, mirrored, sync_on_read, aggregating };
std::string_view name_of(VariableKind kind);

enum class Change : std::uint8_t { assign, add, subtract };

class Variable : public std::enable_shared_from_this<Variable> {
 public:
  virtual ~Variable() = default;
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  Strategy& strategy() const { return strategy_; }
  virtual VariableKind kind() const = 0;
  const VariableSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  // "w" of component 0, "w/replica_1" of component 1.
  std::string component_name(int component) const;
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  bool trainable() const;
  VariableAggregation aggregation() const { return spec_.aggregation; }
  const std::vector<Tensor>& components() const { return components_; }
  std::vector<Device*> devices() const;  // of the components, in order

  // The stored component of the current replica or update. ValueError in a cross-replica context for the kinds with a
  // component a device.
  const Tensor& handle() const;
  // The tensor to compute with: the current component, brought to the replica's device where it is stored elsewhere; in
  // cross-replica context component 0, or for sync-on-read what read() gives. Not a snapshot where no copy was needed:
  // later changes show.
  virtual Tensor value();
  // What reading gives: the same. Sync-on-read variables are aggregated in cross-replica context.
  // Sync-on-read with aggregation NONE in cross-replica context: ValueError.
  virtual Tensor read() { return value(); }

  // In cross-replica context (and outside every scope) every component gets the update; `value` may be per replica. In
  // an update context only the component being updated. In a replica context it depends on kind and aggregation: see
  // docs/tensorflow.md. Numbers fill the shape. Returns value() as seen by the caller.
  Tensor assign(const Value& value) { return change(Change::assign, value); }
  Tensor assign_add(const Value& value) { return change(Change::add, value); }
  Tensor assign_sub(const Value& value) { return change(Change::subtract, value); }

  // Changes the rows that the slices name. In a replica context SUM and MEAN combine the replicas' slices first (and
  // refuse maximum, minimum and replace: NotImplementedError). Sync-on-read: NotImplementedError.
  virtual Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices);
  Tensor scatter_add(const IndexedSlices& slices) { return scatter(kernel::Scatter::add, slices); }
  Tensor scatter_sub(const IndexedSlices& slices) { return scatter(kernel::Scatter::subtract, slices); }
  Tensor scatter_mul(const IndexedSlices& slices) { return scatter(kernel::Scatter::multiply, slices); }
  Tensor scatter_div(const IndexedSlices& slices) { return scatter(kernel::Scatter::divide, slices); }
  Tensor scatter_max(const IndexedSlices& slices) { return scatter(kernel::Scatter::maximum, slices); }
  Tensor scatter_min(const IndexedSlices& slices) { return scatter(kernel::Scatter::minimum, slices); }
  Tensor scatter_update(const IndexedSlices& slices) { return scatter(kernel::Scatter::replace, slices); }

  // What a checkpoint holds of this variable, on the host's device; and the way back from such a tensor.
  virtual Tensor saved_value();
  virtual void restore(const Tensor& saved);

  // A variable that belongs to this one, as a moving average's bias does: of its shape and kind, named "<name>/<slot>",
  // not trainable, zero at first. Created when first asked for.
  std::shared_ptr<Variable> slot(const std::string& name);

 protected:
  Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components);

  enum class Where : std::uint8_t { cross_replica, replica, update };
  Where where() const;
  int current_component() const;  // of the current replica or update, else 0
  virtual Tensor change(Change change, const Value& value);
  // Both in a replica context, for kinds that combine the replicas' values first.
  Tensor change_merged(Change change, const Value& value);
  Value aggregated(Strategy& strategy, const Value& merged) const;
  // All components through the strategy's update, in cross-replica context.
  void change_all(Change change, const Value& value);
  void scatter_all(kernel::Scatter operation, const Value& slices);
  Tensor scatter_merged(kernel::Scatter operation, const IndexedSlices& slices);

 private:
  Strategy& strategy_;
  VariableSpec spec_;
  std::vector<Tensor> components_;
  std::map<std::string, std::shared_ptr<Variable>> slots_;
};

// `spec` with the names, defaults and refusals of TensorFlow's variable creation (ValueError).
VariableSpec checked_spec(VariableSpec spec);
// "foo_1/bar_1" -> "foo/bar": what variables of the replicas are matched by.
std::string canonical_name(std::string_view name);

// Creates a variable under the current strategy: tf.Variable.
std::shared_ptr<Variable> create_variable(const VariableSpec& spec);

}  // namespace tandem
