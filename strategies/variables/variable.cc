#include "strategies/variables/variable.h"

#include <fmt/format.h>

#include <ostream>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/own_change.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/components.h"

namespace tandem {

std::string_view name_of(VariableKind kind) {
  switch (kind) {
    case VariableKind::plain:
      return "plain";
    case VariableKind::mirrored:
      return "mirrored";
    case VariableKind::sync_on_read:
      return "sync on read";
    case VariableKind::aggregating:
      return "aggregating";
  }
  TANDEM_UNREACHABLE("a VariableKind outside its enumerators");
}

Variable::Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
    : strategy_(strategy), spec_(std::move(spec)), components_(std::move(components)), snapshots_(components_.size()) {}

std::string Variable::component_name(int component) const {
  return component == 0 ? name() : fmt::format("{}/replica_{}", name(), component);
}

bool Variable::trainable() const {
  return spec_.trainable.value_or(spec_.synchronization != VariableSynchronization::on_read);
}

std::string Variable::text() const {
  const std::size_t count = components_.size();
  return fmt::format("Variable '{}' ({}, {} {}, {} component{})", name(), tandem::name_of(kind()),
                     tandem::name_of(dtype()), shape().text(), count, count == 1 ? "" : "s");
}

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  return out << variable.text();
}

std::vector<Device*> Variable::devices() const {
  std::vector<Device*> devices;
  for (const Tensor& component : components_) devices.push_back(&component.device());
  return devices;
}

Variable::Where Variable::where() const {
  const Mode* mode = current_mode();
  if (!mode || mode->strategy != &strategy_) return Where::cross_replica;
  if (mode->update_replica) return Where::update;
  return mode->replica ? Where::replica : Where::cross_replica;
}

int Variable::current_component() const {
  if (components_.size() == 1) return 0;
  switch (where()) {
    case Where::update:
      return *current_mode()->update_replica;
    case Where::replica:
      return current_mode()->replica->local_replica_id();
    case Where::cross_replica:
      return 0;
  }
  TANDEM_UNREACHABLE("a Where outside its enumerators");
}

Tensor Variable::component_value(int component) {
  const auto i = static_cast<std::size_t>(component);
  return snapshots_.at(i).take(components_.at(i));
}

Value::Parts Variable::component_values() {
  Value::Parts values;
  for (std::size_t i = 0; i < components_.size(); ++i) values.emplace_back(component_value(static_cast<int>(i)));
  return values;
}

Tensor Variable::changed_component() {
  const int component = current_component();
  return where() == Where::update ? components_.at(static_cast<std::size_t>(component)) : component_value(component);
}

const Tensor& Variable::writable(int component, Contents contents) {
  const auto i = static_cast<std::size_t>(component);
  Tensor& memory = components_.at(i);
  ++writes_;
  if (!snapshots_[i].are_held()) return memory;
  const Tensor held = memory;
  memory = held.device().allocate(held.dtype(), held.shape());
  if (contents == Contents::kept) held.device().compute_stream().copy(memory, held, Category::update);
  snapshots_[i] = Snapshots();
  return memory;
}

const Tensor& Variable::handle() {
  const bool has_one = kind() == VariableKind::plain || kind() == VariableKind::aggregating;
  if (where() == Where::cross_replica && !has_one) {
    throw ValueError(
        fmt::format("the handle of variable '{}' in cross-replica context: it has one for each of {} "
                    "components; ask inside run() or update()",
                    name(), components_.size()));
  }
  return writable(current_component(), Contents::kept);
}

Tensor Variable::value() {
  return component_value(current_component());
}

// If the value is a variable, uses what it holds before the change, even if it is this variable.
void Variable::change_component(Change change, int component, const Value& value) {
  const Value& own = value.is_distributed() ? value.parts().front() : value;
  const Value now = own.is(ValueKind::variable) ? Value(own.variable()->value()) : own;
  check_operand(components_.at(static_cast<std::size_t>(component)), now);
  apply_change(change, writable(component, change == Change::assign ? Contents::replaced : Contents::kept), now);
}

void Variable::scatter_component(kernel::Scatter operation, int component, const IndexedSlices& slices) {
  check_slices(components_.at(static_cast<std::size_t>(component)), slices);
  apply_scatter(operation, writable(component, Contents::kept), slices);
}

Tensor Variable::change(Change change, const Value& value) {
  switch (where()) {
    case Where::update:
      change_component(change, current_component(), select_replica(current_component(), value));
      return changed_component();
    case Where::replica:
      return change_merged(change, value);
    case Where::cross_replica:
      change_all(change, value);
      return this->value();
  }
  TANDEM_UNREACHABLE("a Where outside its enumerators");
}

std::string_view name_of(Change change) {
  switch (change) {
    case Change::assign:
      return "assign()";
    case Change::add:
      return "assign_add()";
    case Change::subtract:
      return "assign_sub()";
  }
  TANDEM_UNREACHABLE("a Change outside its enumerators");
}

std::vector<const Variable*> pointers_to(const std::vector<std::shared_ptr<Variable>>& variables) {
  std::vector<const Variable*> pointers;
  for (const auto& variable : variables) pointers.push_back(variable.get());
  return pointers;
}

Value opened_if_sync_on_read(const Value& value) {
  if (!value.is(ValueKind::variable) || value.variable()->kind() != VariableKind::sync_on_read) return value;
  return Value::per_replica(value.variable()->component_values());
}

Value Variable::aggregated(std::string_view call, Strategy& strategy, const Value& merged) const {
  if (spec_.aggregation == VariableAggregation::only_first_replica) {  // each worker takes its own first replica's
    strategy.extended().note_change(call, *this);
    return select_replica(0, merged);
  }
  if (spec_.aggregation == VariableAggregation::mean && !has_mean(dtype()) && merged.is_distributed()) {
    throw ValueError(
        fmt::format("variable '{}' of type {} cannot aggregate by MEAN", name(), tandem::name_of(dtype())));
  }
  return strategy.extended().implementation().all_reduce(reduce_op_from_aggregation(spec_.aggregation), merged, {});
}

Tensor Variable::change_merged(Change change, const Value& value) {
  ReplicaContext& replica = *get_replica_context();
  const Value result = replica.merge_call(
      [this, change, &replica](Strategy& strategy, const Value::Parts& merged) {
        change_all(change, aggregated(tandem::name_of(change), strategy, merged.front()));
        return result_for_all(replica.device());
      },
      {value}, {std::string(tandem::name_of(change)), {this}});
  return result.is(ValueKind::tensor) ? result.tensor() : this->value();
}

void Variable::check_own_context(std::string_view call) const {
  const Mode* mode = current_mode();
  if (!mode || mode->strategy == &strategy_ || mode->strategy == &default_strategy()) return;
  throw RuntimeError(fmt::format(
      "{} of variable '{}' in a context of a strategy that did not create it (mixing different strategies): it was "
      "created outside this '{}' strategy's scope, by {} '{}' strategy; create it inside the scope",
      call, name(), mode->strategy->name(), mode->strategy->name() == strategy_.name() ? "another" : "the",
      strategy_.name()));
}

void Variable::change_all(Change change, const Value& value) {
  check_own_context(tandem::name_of(change));
  const OwnChange noted(strategy_, tandem::name_of(change), *this);
  strategy_.extended().update(shared_from_this(),
                              [change](Variable& variable, const Value::Parts& arguments) {
                                variable.change_component(change, variable.current_component(), arguments.front());
                                return Value();
                              },
                              {value});
}

void Variable::scatter_all(kernel::Scatter operation, const Value& slices) {
  check_own_context("a scatter");
  const OwnChange noted(strategy_, "a scatter", *this);
  strategy_.extended().update(shared_from_this(),
                              [operation](Variable& variable, const Value::Parts& arguments) {
                                variable.scatter_component(operation, variable.current_component(),
                                                           arguments.front().slices());
                                return Value();
                              },
                              {slices});
}

Tensor Variable::scatter_merged(kernel::Scatter operation, const IndexedSlices& slices) {
  const bool combines = aggregation() == VariableAggregation::sum || aggregation() == VariableAggregation::mean;
  if (combines && (operation == kernel::Scatter::maximum || operation == kernel::Scatter::minimum ||
                   operation == kernel::Scatter::replace)) {
    throw NotImplementedError(
        fmt::format("variable '{}' aggregates by {}: scatter_max, scatter_min and scatter_update of several replicas "
                    "have no meaning",
                    name(), tandem::name_of(aggregation())));
  }
  ReplicaContext& replica = *get_replica_context();
  const Value result = replica.merge_call(
      [this, operation, &replica](Strategy& strategy, const Value::Parts& merged) {
        scatter_all(operation, aggregated("a scatter", strategy, merged.front()));
        return result_for_all(replica.device());
      },
      {Value(slices)}, {"a scatter", {this}});
  return result.is(ValueKind::tensor) ? result.tensor() : value();
}

Tensor Variable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  switch (where()) {
    case Where::update:
      scatter_component(operation, current_component(), slices);
      return changed_component();
    case Where::replica:
      return scatter_merged(operation, slices);
    case Where::cross_replica:
      scatter_all(operation, Value(slices));
      return value();
  }
  TANDEM_UNREACHABLE("a Where outside its enumerators");
}

Tensor Variable::saved_value() {
  return copied_to_host(strategy_.extended().worker(), component_value(0));
}

void Variable::restore(const Tensor& saved) {
  change_all(Change::assign, Value(saved));
}

std::shared_ptr<Variable> Variable::slot(const std::string& name) {
  std::shared_ptr<Variable>& slot = slots_[name];
  if (slot) return slot;
  VariableSpec spec = spec_;
  spec.name += "/" + name;
  spec.initial_value = nullptr;
  spec.trainable = false;
  spec.constraint = nullptr;
  slot = strategy_.create_variable(spec);
  return slot;
}

std::shared_ptr<Variable> create_variable(const VariableSpec& spec) {
  return get_strategy().create_variable(spec);
}

}  // namespace tandem
