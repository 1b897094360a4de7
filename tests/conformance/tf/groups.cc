#include "tests/conformance/tf/groups.h"

#include <algorithm>

#include "strategies/input/input_context.h"

namespace tandem {
namespace {

Json joined(const std::vector<Json>& lists) {
  Json all = Json::array();
  for (const Json& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Tensor like(const Tensor& tensor) {
  return tensor.device().allocate(tensor.dtype(), tensor.shape());
}

Tensor combined(kernel::Binary operation, const Tensor& a, const Tensor& b) {
  Tensor to = like(a);
  to.device().compute_stream().launch(op::elementwise(operation, to, a, b));
  return to;
}

}  // namespace

Json common(const Json& list) {
  const bool all_equal = std::all_of(list.begin(), list.end(), [&](const Json& one) { return one == list.front(); });
  return !list.empty() && all_equal ? list.front() : list;
}

CaseFunction staged_together(Steps steps, Summary summary) {
  return [steps = std::move(steps), summary = std::move(summary)](const CaseWorld& world) -> Json {
    return summary(world.on_workers(world.workers(), world.replicas(), [&](Worker& worker) -> Json {
      const std::unique_ptr<Strategy> strategy = strategy_of(world.spec(), worker);
      Stage stage(worker, *strategy, world.spec());
      return steps(stage);
    }));
  };
}

CaseFunction in_groups(Steps steps, Summary summary) {
  return [steps = std::move(steps), summary = std::move(summary)](const CaseWorld& world) -> Json {
    const int replicas = world.replicas();
    Json by_division = Json::object(), all = Json::array();
    for (int workers = 1; workers <= replicas; ++workers) {
      if (replicas % workers != 0) continue;
      const std::vector<Json> lists = world.on_workers(workers, replicas / workers, [&](Worker& worker) -> Json {
        const std::unique_ptr<Strategy> strategy = strategy_of(world.spec(), worker);
        Stage stage(worker, *strategy, world.spec());
        return steps(stage);
      });
      all.push_back(summary(joined(lists)));
      by_division[std::to_string(workers) + " workers"] = all.back();
    }
    const bool all_equal = std::all_of(all.begin(), all.end(), [&](const Json& one) { return one == all.front(); });
    return all_equal ? all.front() : by_division;
  };
}

MirroredStrategy another(const Stage& stage) {
  return {stage.worker, {stage.worker.devices().begin(), stage.worker.devices().end()}};
}

Value per_local_replica(const Stage& stage, const std::function<Value(int)>& of) {
  return stage.strategy.experimental_distribute_values_from_function(
      [&](const ValueContext& context) { return of(context.replica_id_in_sync_group()); });
}

Tensor plus(const Tensor& tensor, double number) {
  Tensor to = like(tensor);
  to.device().compute_stream().launch(op::fill(to, number));
  to.device().compute_stream().launch(op::elementwise(kernel::Binary::add, to, to, tensor));
  return to;
}

Tensor times(const Tensor& tensor, double factor) {
  Tensor to = like(tensor);
  to.device().compute_stream().launch(op::scale_add(to, tensor, factor, 0));
  return to;
}

Tensor times(const Tensor& a, const Tensor& b) {
  return combined(kernel::Binary::multiply, a, b);
}

Tensor minus(const Tensor& a, const Tensor& b) {
  return combined(kernel::Binary::subtract, a, b);
}

Tensor sum_of(const Tensor& vector) {
  Tensor to = vector.device().allocate(vector.dtype(), Shape{});
  to.device().compute_stream().launch(op::sum_axis(to, vector, 0));
  return to;
}

}  // namespace tandem
