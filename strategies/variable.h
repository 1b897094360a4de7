// Distributed variables: one component per device, kept equal (mirrored) or reduced when read (sync on read).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensor.h"
#include "strategies/options.h"
#include "strategies/value.h"

namespace tandem {

class Strategy;

struct VariableSpec {
  std::string name = "Variable";
  DType dtype = DType::f32;
  Shape shape{};
  std::function<double(std::int64_t element)> initial_value{};  // row-major; empty: zeros
  bool trainable = true;
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  VariableAggregation aggregation = VariableAggregation::none;
};

class Variable {
 public:
  // Use Strategy::create_variable.
  Variable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components);

  const std::string& name() const { return spec_.name; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  bool trainable() const { return spec_.trainable; }
  VariableAggregation aggregation() const { return spec_.aggregation; }
  bool is_sync_on_read() const { return spec_.synchronization == VariableSynchronization::on_read; }

  const std::vector<Tensor>& components() const { return components_; }
  // The component of the current replica or update; in cross-replica context component 0.
  const Tensor& value() const;
  // What reading gives: the current component, or for sync-on-read in cross-replica context the aggregated value.
  // Sync-on-read with aggregation NONE in cross-replica context: ValueError.
  Value read();

  // In cross-replica context every component gets the update (`value` may be per replica). In a replica context it
  // depends on the aggregation: NONE updates this replica's component only; SUM and MEAN reduce `value` over the
  // replicas first; ONLY_FIRST_REPLICA takes replica 0's. Sync-on-read updates this replica's component.
  void assign(const Value& value) { update(Change::assign, value); }
  void assign_add(const Value& value) { update(Change::add, value); }
  void assign_sub(const Value& value) { update(Change::subtract, value); }

 private:
  enum class Change : std::uint8_t { assign, add, subtract };
  void update(Change change, const Value& value);
  void update_in_replica(Change change, const Value& value);
  void update_all(Change change, const Value& value);
  void update_sync_on_read(Change change, const Value& value);
  static void apply(Change change, const Tensor& component, const Value& value);

  Strategy& strategy_;
  VariableSpec spec_;
  std::vector<Tensor> components_;
};

}  // namespace tandem
