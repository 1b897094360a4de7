// What a case's steps need at hand: a worker, the strategy of the setup, and short ways to make and read values.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategies/base/errors.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "tests/conformance/tf/case.h"

namespace tandem {

class Stage {
 public:
  Stage(Worker& at, Strategy& under, const Case& of) : worker(at), strategy(under), spec(of) {}
  Worker& worker;
  Strategy& strategy;
  const Case& spec;

  using Aggregation = VariableAggregation;
  using Synchronization = VariableSynchronization;
  // A scalar or a vector variable; integers with a dtype.
  std::shared_ptr<Variable> var(double initial, Aggregation aggregation = Aggregation::none,
                                Synchronization synchronization = Synchronization::automatic,
                                DType dtype = DType::f32) const;
  std::shared_ptr<Variable> var(std::vector<double> initial, Aggregation aggregation = Aggregation::none,
                                Synchronization synchronization = Synchronization::automatic,
                                DType dtype = DType::f32) const;
  // A tensor on the device, row-major.
  Tensor tensor(Device& device, const Shape& shape, std::vector<double> values, DType dtype = DType::f32) const;
  IndexedSlices slices(Device& device, std::vector<std::int64_t> indices, const Shape& rows_shape,
                       std::vector<double> rows, const Shape& dense_shape, DType dtype = DType::f32) const;
  // Element i on replica i's device.
  Value per_replica(const std::vector<double>& scalars) const;

  Device& device(int i) const { return *strategy.extended().worker_devices().at(static_cast<std::size_t>(i)); }

  // Numbers and tensors as JSON numbers and nested lists; lists, tuples and per-replica or mirrored values as lists;
  // maps as objects; nothing as null; variables by their read().
  Json json(const Value& value) const;
  Json json(const Tensor& tensor) const;
  Json components(Variable& variable) const;
  Json locals(const Value& value) const;  // experimental_local_results
};

// The replica context of the calling replica function, and its id.
ReplicaContext& replica();
int replica_id();

// run() for functions without arguments or results.
void run_each(const Stage& stage, const std::function<void()>& function);

// A case function that performs `steps` under the strategy that the setup names ("any": Mirrored), on each worker;
// with one worker its result, with several the list of theirs, in worker order.
CaseFunction staged(std::function<Json(Stage& stage)> steps);

// The strategy of a setup's "strategy". ValueError for a name that this does not know.
std::unique_ptr<Strategy> strategy_of(const Case& spec, Worker& worker);

}  // namespace tandem
