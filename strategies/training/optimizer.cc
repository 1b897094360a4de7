#include "strategies/training/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/training/gradient_clipping.h"
#include "strategies/training/sparse_rows.h"
#include "strategies/values/shapes.h"
#include "strategies/variables/checkpoint.h"
#include "strategies/variables/components.h"
#include "strategies/variables/sharded_variable.h"

namespace tandem::optimizers {
namespace {

void check_clipping(const Clipping& clipping) {
  int kinds = 0;
  for (const auto& [name, limit] : {std::pair("clipnorm", clipping.clipnorm),
                                    {"clipvalue", clipping.clipvalue},
                                    {"global_clipnorm", clipping.global_clipnorm}}) {
    if (!limit) continue;
    ++kinds;
    if (!(*limit > 0)) throw ValueError(fmt::format("{} is {}; it must be positive", name, *limit));
  }
  if (kinds > 1) throw ValueError("only one of clipnorm, clipvalue and global_clipnorm may be set");
}

// Calls `function` for a value's part on each device, or for a bare value.
template <typename Function>
Value of_parts(const Value& value, const Function& function) {
  if (!value.is_distributed()) return function(value);
  Value::Parts parts;
  for (const Value& part : value.parts()) parts.push_back(function(part));
  return value.is(ValueKind::mirrored) ? Value::mirrored(std::move(parts)) : Value::per_replica(std::move(parts));
}

const Value& first_part(const Value& value) {
  return value.is_distributed() ? value.parts().front() : value;
}

Value clipped(const Clipping& clipping, const Value& gradient) {
  if (clipping.clipvalue) return clipped_by_value(gradient, *clipping.clipvalue);
  return clipping.clipnorm ? clipped_by_norm(gradient, *clipping.clipnorm) : gradient;
}

}  // namespace

Optimizer::Optimizer(std::string name, LearningRate learning_rate, Clipping clipping)
    : name_(std::move(name)), learning_rate_(std::move(learning_rate)), clipping_(clipping) {
  check_clipping(clipping_);
}

const std::shared_ptr<Variable>& Optimizer::iterations() {
  if (!iterations_) {
    iterations_ = get_strategy().create_variable({.name = name_ + "/iterations",
                                                  .dtype = DType::i64,
                                                  .trainable = false,
                                                  .aggregation = VariableAggregation::only_first_replica});
    writes_ = iterations_->write_count();
  }
  return iterations_;
}

std::int64_t Optimizer::steps_so_far() {
  const std::shared_ptr<Variable>& counter = iterations();
  const std::optional<std::int64_t> writes = counter->write_count();
  if (writes && writes == writes_) return steps_;
  const double read = host_number(counter->strategy().extended().worker(), counter->read());
  if (std::isnan(read)) return steps_;  // an engine without values
  writes_ = writes;
  return steps_ = static_cast<std::int64_t>(read);
}

double Optimizer::learning_rate() {
  return learning_rate_.at(learning_rate_.is_schedule() ? steps_so_far() : 0);
}

std::vector<std::string> Optimizer::get_slot_names() const {
  std::vector<std::string> names;
  for (const SlotSpec& slot : slots()) names.push_back(slot.name);
  return names;
}

const std::vector<std::shared_ptr<Variable>>& Optimizer::slots_of(const std::shared_ptr<Variable>& variable) {
  if (const auto found = slots_by_variable_.find(variable.get()); found != slots_by_variable_.end()) {
    return found->second->slots;
  }
  auto created = std::make_unique<Slots>(Slots{variable, {}});
  for (const SlotSpec& slot : slots()) {
    VariableSpec spec{.name = fmt::format("{}/{}/{}", variable->name(), name_, slot.name),
                      .dtype = variable->dtype(),
                      .shape = variable->shape(),
                      .trainable = false,
                      .aggregation = variable->aggregation(),
                      .colocate_with = variable};
    if (slot.initial_value != 0) spec.initial_value = [value = slot.initial_value](std::int64_t) { return value; };
    created->slots.push_back(variable->strategy().create_variable(spec));
  }
  slots_.push_back(std::move(created));
  slots_by_variable_.emplace(variable.get(), slots_.back().get());
  return slots_.back()->slots;
}

void Optimizer::build(const std::vector<std::shared_ptr<Variable>>& variables) {
  Checkpoint::require_outside_run(fmt::format("build() of optimizer '{}'", name_));
  iterations();
  for (const auto& variable : variables) slots_of(variable);
}

std::shared_ptr<Variable> Optimizer::get_slot(const std::shared_ptr<Variable>& variable,
                                              const std::string& slot) const {
  const std::vector<std::string> names = get_slot_names();
  const auto name = std::ranges::find(names, slot);
  if (name == names.end()) {
    throw KeyError(fmt::format("optimizer '{}' has no slot '{}' ({})", name_, slot, fmt::join(names, ", ")));
  }
  const auto found = slots_by_variable_.find(variable.get());
  if (found == slots_by_variable_.end()) return nullptr;
  return found->second->slots[static_cast<std::size_t>(name - names.begin())];
}

std::vector<std::shared_ptr<Variable>> Optimizer::variables() const {
  std::vector<std::shared_ptr<Variable>> all;
  if (iterations_) all.push_back(iterations_);
  for (const auto& one : slots_) all.insert(all.end(), one->slots.begin(), one->slots.end());
  return all;
}

void Optimizer::add_to(Checkpoint& checkpoint) const {
  for (const auto& variable : variables()) checkpoint.add(variable->name(), variable);
}

// Gives each gradient its number, by which the update finds the rows of slices.
void Optimizer::prepare(Strategy& strategy, const std::vector<std::shared_ptr<Variable>>& variables,
                        std::vector<Value>& gradients, std::vector<Rows>& rows) {
  rows.resize(variables.size());
  for (const auto& variable : variables) {
    if (&variable->strategy() != &strategy) {
      throw ValueError(fmt::format(
          "optimizer '{}' under strategy '{}' is given variable '{}', which was created under strategy '{}'; create it "
          "in the scope of the strategy that trains it",
          name_, strategy.name(), variable->name(), variable->strategy().name()));
    }
    slots_of(variable);
  }
  if (clipping_.global_clipnorm) clip_by_global_norm(gradients, *clipping_.global_clipnorm);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Value& gradient = gradients[i];
    if (first_part(gradient).is(ValueKind::sparse)) {
      gradient = of_parts(gradient, [&](const Value& part) { return clipped(clipping_, part); });
      if (sparse() == Sparse::by_rows) {
        Worker& worker = strategy.extended().worker();
        const Rows given = rows_of(worker, first_part(gradient).slices(), *variables[i]);
        rows[i] = distinct(given);
        gradient = of_parts(gradient, [&](const Value& part) -> Value {
          return with_distinct_rows(worker, part.slices(), given, rows[i]);
        });
      }
    }
    gradient = Value::tuple({gradient, Value::integer(static_cast<std::int64_t>(i))});
  }
}

void Optimizer::update_component(const Step& step, Variable& variable, const Value& gradient, const Rows& rows) const {
  Operands operands{.value = variable.handle()};
  for (const auto& slot : slots_by_variable_.at(&variable)->slots) operands.slots.push_back(slot->handle());
  if (!gradient.is(ValueKind::sparse)) {
    operands.gradient = operand_beside(operands.value, clipped(clipping_, gradient));
    return update(step, operands);
  }
  const IndexedSlices slices = copy_on(operands.value.device(), gradient.slices());
  check_slices(operands.value, slices);
  switch (sparse()) {
    case Sparse::as_dense:
      operands.gradient = dense(slices);
      return update(step, operands);
    case Sparse::by_rows:
      return update_rows(step, operands, slices, rows);
    case Sparse::added: {
      const Tensor scaled = slices.values.device().allocate(slices.values.dtype(), slices.values.shape());
      scaled.device().compute_stream().launch(as_update(op::scale_add(scaled, slices.values, step.learning_rate, 0)));
      apply_scatter(kernel::Scatter::subtract, operands.value, {scaled, slices.indices, slices.dense_shape});
    }
  }
}

void Optimizer::update_rows(const Step& step, const Operands& whole, const Value& gradient, const Rows& rows) const {
  const IndexedSlices& slices = gradient.slices();
  Operands part{.value = gathered(whole.value, rows), .gradient = slices.values};
  for (const Tensor& slot : whole.slots) part.slots.push_back(gathered(slot, rows));
  update(step, part);
  apply_scatter(kernel::Scatter::replace, whole.value, {part.value, slices.indices, slices.dense_shape});
  for (std::size_t i = 0; i < part.slots.size(); ++i) {
    apply_scatter(kernel::Scatter::replace, whole.slots[i], {part.slots[i], slices.indices, slices.dense_shape});
  }
}

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables,
                                bool skip_gradients_aggregation) {
  Step step;
  std::vector<Rows> rows;
  const ValueRule rule = [&](Variable& variable, const Value& numbered) {
    const auto number = static_cast<std::size_t>(numbered.parts()[1].integer_number());
    update_component(step, variable, numbered.parts()[0], rows[number]);
  };
  GradientHandling handling{.aggregates = !skip_gradients_aggregation,
                            .keeps_sums_here = clipping_.global_clipnorm.has_value()};
  handling.before = [&](Strategy& strategy, const std::vector<std::shared_ptr<Variable>>& variables,
                        std::vector<Value>& gradients) {
    prepare(strategy, variables, gradients, rows);
    const std::int64_t steps = depends_on_step() || learning_rate_.is_schedule() ? steps_so_far() : 0;
    step = {.learning_rate = learning_rate_.at(steps), .number = steps + 1};
  };
  handling.after = [&] {
    const bool is_known = iterations()->write_count() == writes_;
    iterations_->assign_add(Value::integer(1));
    ++steps_;
    if (is_known) writes_ = iterations_->write_count();
  };
  tandem::apply_gradients(gradients_and_variables, rule, handling);
}

std::vector<GradientAndVariable> gradients_of_shards(const Value& gradient, const ShardedVariable& variable) {
  std::vector<GradientAndVariable> pairs;
  const std::vector<std::int64_t> offsets = variable.row_offsets();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::shared_ptr<Variable>& shard = variable.variables()[i];
    if (!variable.is_sharded()) return {{gradient, shard}};
    if (gradient.is(ValueKind::sparse)) {
      Worker& worker = shard->strategy().extended().worker();
      pairs.emplace_back(rows_between(worker, gradient.slices(), offsets[i], shard->shape()), shard);
    } else {
      pairs.emplace_back(gradient.tensor().slice(offsets[i], shard->shape()[0]), shard);
    }
  }
  return pairs;
}

}  // namespace tandem::optimizers
