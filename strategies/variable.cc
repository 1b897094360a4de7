#include "strategies/variable.h"

#include <fmt/format.h>

#include "strategies/context.h"
#include "strategies/errors.h"
#include "strategies/regroup.h"
#include "strategies/replica_context.h"
#include "strategies/strategy.h"

namespace tandem {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

Op as_update(Op op) {
  op.category = Category::update;
  return op;
}

}  // namespace

Variable::Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
    : strategy_(strategy), spec_(std::move(spec)), components_(std::move(components)) {}

const Tensor& Variable::value() const {
  const Mode* mode = current_mode();
  int index = 0;
  if (mode && mode->update_replica) index = *mode->update_replica;
  if (mode && mode->replica && mode->strategy == &strategy_) index = mode->replica->replica_id_in_sync_group();
  return components_.at(static_cast<std::size_t>(index));
}

Value Variable::read() {
  const Mode* mode = current_mode();
  const bool own_component = (mode && mode->replica) || (mode && mode->update_replica);
  if (!is_sync_on_read() || own_component || spec_.aggregation == VariableAggregation::only_first_replica)
    return value();
  if (spec_.aggregation == VariableAggregation::none) {
    throw ValueError(
        fmt::format("variable '{}' is read in cross-replica context, but its aggregation is NONE", name()));
  }
  const Value all = regroup(Value::Parts(components_.begin(), components_.end()));
  return strategy_.reduce(reduce_op_from_aggregation(spec_.aggregation), all);
}

void Variable::update(Change change, const Value& value) {
  const Mode* mode = current_mode();
  if (mode && mode->update_replica) {
    apply(change, this->value(), select_replica(*mode->update_replica, value));
  } else if (mode && mode->replica && mode->strategy == &strategy_) {
    update_in_replica(change, value);
  } else if (is_sync_on_read()) {
    update_sync_on_read(change, value);
  } else {
    update_all(change, value);
  }
}

void Variable::update_in_replica(Change change, const Value& value) {
  if (is_sync_on_read() || spec_.aggregation == VariableAggregation::none) {
    apply(change, this->value(), value);
    return;
  }
  get_replica_context()->merge_call(
      [this, change](Strategy& strategy, const Value::Parts& merged) {
        const Value& all = merged.front();
        if (spec_.aggregation == VariableAggregation::only_first_replica) {
          update_all(change, select_replica(0, all));
          return Value();
        }
        if (spec_.aggregation == VariableAggregation::mean && !is_floating(dtype()) && all.is_distributed()) {
          throw ValueError(
              fmt::format("variable '{}' of type {} cannot aggregate by MEAN", name(), tandem::name_of(dtype())));
        }
        update_all(change, strategy.extended().all_reduce(reduce_op_from_aggregation(spec_.aggregation), all));
        return Value();
      },
      {value});
}

void Variable::update_all(Change change, const Value& value) {
  strategy_.extended().update(
      strategy_, *this,
      [change](const Tensor& component, const Value::Parts& arguments) { apply(change, component, arguments.front()); },
      {value});
}

void Variable::update_sync_on_read(Change change, const Value& value) {
  const bool is_sum = spec_.aggregation == VariableAggregation::sum;
  if (is_sum && change != Change::assign) {
    throw ValueError(
        fmt::format("variable '{}' aggregates by SUM on read: add and subtract in a replica context", name()));
  }
  if (!is_sum || !value.is(ValueKind::number)) {
    update_all(change, value);
    return;
  }
  double share = value.number() / static_cast<double>(components_.size());
  if (!is_floating(dtype())) share = static_cast<double>(static_cast<std::int64_t>(share));
  update_all(change, Value(share));
}

void Variable::apply(Change change, const Tensor& component, const Value& value) {
  Stream& stream = component.device().compute_stream();
  if (value.is(ValueKind::number)) {
    if (change == Change::assign) {
      stream.launch(as_update(op::fill(component, value.number())));
      return;
    }
    const Tensor filled = component.device().allocate(component.dtype(), component.shape());
    stream.launch(as_update(op::fill(filled, value.number())));
    stream.launch(as_update(op::scale_add(component, filled, change == Change::add ? 1 : -1, 1)));
    return;
  }
  Tensor from = value.tensor();
  if (&from.device() != &component.device()) {
    const Tensor fetched = component.device().allocate(from.dtype(), from.shape());
    stream.copy(fetched, from, Category::update);
    from = fetched;
  }
  if (change == Change::assign) {
    stream.copy(component, from, Category::update);
  } else {
    stream.launch(as_update(op::scale_add(component, from, change == Change::add ? 1 : -1, 1)));
  }
}

}  // namespace tandem
