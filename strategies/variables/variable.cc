#include "strategies/variables/variable.h"

#include <fmt/format.h>

#include <cctype>

#include "strategies/base/context.h"
#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/base/strategy.h"
#include "strategies/values/host_values.h"
#include "strategies/values/regroup.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

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
  return "?";
}

Variable::Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
    : strategy_(strategy), spec_(std::move(spec)), components_(std::move(components)) {}

std::string Variable::component_name(int component) const {
  return component == 0 ? name() : fmt::format("{}/replica_{}", name(), component);
}

bool Variable::trainable() const {
  return spec_.trainable.value_or(spec_.synchronization != VariableSynchronization::on_read);
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
  return 0;
}

const Tensor& Variable::handle() const {
  const bool has_one = kind() == VariableKind::plain || kind() == VariableKind::aggregating;
  if (where() == Where::cross_replica && !has_one) {
    throw ValueError(
        fmt::format("the handle of variable '{}' in cross-replica context: it has one for each of {} "
                    "components; ask inside run() or update()",
                    name(), components_.size()));
  }
  return components_.at(static_cast<std::size_t>(current_component()));
}

Tensor Variable::value() {
  return components_.at(static_cast<std::size_t>(current_component()));
}

Tensor Variable::change(Change change, const Value& value) {
  switch (where()) {
    case Where::update:
      apply_change(change, handle(), select_replica(current_component(), value));
      return handle();
    case Where::replica:
      return change_merged(change, value);
    case Where::cross_replica:
      change_all(change, value);
      return this->value();
  }
  return {};
}

Value Variable::aggregated(Strategy& strategy, const Value& merged) const {
  if (spec_.aggregation == VariableAggregation::only_first_replica) return select_replica(0, merged);
  if (spec_.aggregation == VariableAggregation::mean && !is_floating(dtype()) && merged.is_distributed()) {
    throw ValueError(
        fmt::format("variable '{}' of type {} cannot aggregate by MEAN", name(), tandem::name_of(dtype())));
  }
  return strategy.extended().implementation().all_reduce(reduce_op_from_aggregation(spec_.aggregation), merged, {});
}

Tensor Variable::change_merged(Change change, const Value& value) {
  get_replica_context()->merge_call(
      [this, change](Strategy& strategy, const Value::Parts& merged) {
        change_all(change, aggregated(strategy, merged.front()));
        return Value();
      },
      {value});
  return this->value();
}

void Variable::change_all(Change change, const Value& value) {
  strategy_.extended().update(shared_from_this(),
                              [change](Variable& variable, const Value::Parts& arguments) {
                                apply_change(change, variable.handle(), arguments.front());
                                return Value();
                              },
                              {value});
}

void Variable::scatter_all(kernel::Scatter operation, const Value& slices) {
  strategy_.extended().update(shared_from_this(),
                              [operation](Variable& variable, const Value::Parts& arguments) {
                                apply_scatter(operation, variable.handle(), arguments.front().slices());
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
  get_replica_context()->merge_call(
      [this, operation](Strategy& strategy, const Value::Parts& merged) {
        scatter_all(operation, aggregated(strategy, merged.front()));
        return Value();
      },
      {Value(slices)});
  return value();
}

Tensor Variable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  switch (where()) {
    case Where::update:
      apply_scatter(operation, handle(), slices);
      return handle();
    case Where::replica:
      return scatter_merged(operation, slices);
    case Where::cross_replica:
      scatter_all(operation, Value(slices));
      return value();
  }
  return {};
}

Tensor Variable::saved_value() {
  return copied_to_host(strategy_.extended().worker(), components_.front());
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
  slot = strategy_.create_variable(spec);
  return slot;
}

VariableSpec checked_spec(VariableSpec spec) {
  if (spec.name.empty()) spec.name = "Variable";
  if (spec.synchronization == VariableSynchronization::none) {
    throw ValueError(
        fmt::format("variable '{}': NONE variable synchronization has no meaning for a distributed "
                    "variable; choose AUTO, ON_WRITE or ON_READ",
                    spec.name));
  }
  if (spec.aggregation == VariableAggregation::mean && !is_floating(spec.dtype)) {
    throw ValueError(fmt::format("variable '{}': aggregation MEAN and a non-floating dtype, {}, cannot go together",
                                 spec.name, tandem::name_of(spec.dtype)));
  }
  return spec;
}

// Every "_<digit>" before a slash or at the end goes.
std::string canonical_name(std::string_view name) {
  if (name.empty()) return "Variable";
  std::string canonical;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_suffix = name[i] == '_' && i + 1 < name.size() &&
                           std::isdigit(static_cast<unsigned char>(name[i + 1])) != 0 &&
                           (i + 2 == name.size() || name[i + 2] == '/');
    if (is_suffix) {
      ++i;
    } else {
      canonical += name[i];
    }
  }
  return canonical;
}

std::shared_ptr<Variable> create_variable(const VariableSpec& spec) {
  return get_strategy().create_variable(spec);
}

}  // namespace tandem
