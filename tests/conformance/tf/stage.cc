#include "tests/conformance/tf/stage.h"

#include "strategies/cross_device/host_values.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/regroup.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"

namespace tandem {
namespace {

std::function<double(std::int64_t)> elements_of(std::vector<double> values) {
  return [values = std::move(values)](std::int64_t i) { return values.at(static_cast<std::size_t>(i)); };
}

Json nested(const Shape& shape, int axis, const std::vector<double>& values, std::size_t& next) {
  if (axis == shape.rank()) return values.at(next++);
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.push_back(nested(shape, axis + 1, values, next));
  return list;
}

}  // namespace

std::shared_ptr<Variable> Stage::var(double initial, Aggregation aggregation, Synchronization synchronization,
                                     DType dtype) const {
  return strategy.create_variable({.name = "v",
                                   .dtype = dtype,
                                   .shape = {},
                                   .initial_value = [initial](std::int64_t) { return initial; },
                                   .synchronization = synchronization,
                                   .aggregation = aggregation});
}

std::shared_ptr<Variable> Stage::var(std::vector<double> initial, Aggregation aggregation,
                                     Synchronization synchronization, DType dtype) const {
  const auto size = static_cast<std::int64_t>(initial.size());
  return strategy.create_variable({.name = "v",
                                   .dtype = dtype,
                                   .shape = {size},
                                   .initial_value = elements_of(std::move(initial)),
                                   .synchronization = synchronization,
                                   .aggregation = aggregation});
}

Tensor Stage::tensor(Device& device, const Shape& shape, std::vector<double> values, DType dtype) const {
  Tensor host = host_tensor(worker.cpu(), dtype, shape, elements_of(std::move(values)));
  if (&device == &worker.cpu()) return host;
  Tensor tensor = device.allocate(dtype, shape);
  device.compute_stream().wait(worker.cpu().compute_stream().record());
  device.compute_stream().copy(tensor, host);
  return tensor;
}

IndexedSlices Stage::slices(Device& device, std::vector<std::int64_t> indices, const Shape& rows_shape,
                            std::vector<double> rows, const Shape& dense_shape, DType dtype) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  return {tensor(device, rows_shape, std::move(rows), dtype),
          tensor(device, {count}, {indices.begin(), indices.end()}, DType::i64), dense_shape};
}

Value Stage::per_replica(const std::vector<double>& scalars) const {
  Value::Parts parts;
  for (const double scalar : scalars) {
    parts.emplace_back(tensor(device(static_cast<int>(parts.size())), Shape{}, {scalar}));
  }
  return Value::per_replica(std::move(parts));
}

Json Stage::json(const Tensor& tensor) const {
  std::size_t next = 0;
  return nested(tensor.shape(), 0, host_values(worker, tensor), next);
}

Json Stage::json(const Value& value) const {
  switch (value.kind()) {
    case ValueKind::none:
      return nullptr;
    case ValueKind::number:
      return value.number();
    case ValueKind::text:
      return value.text();
    case ValueKind::tensor:
      return json(value.tensor());
    case ValueKind::variable:
      return json(value.variable()->read());
    case ValueKind::sparse:
      return {{"values", json(value.slices().values)}, {"indices", json(value.slices().indices)}};
    case ValueKind::map: {
      Json object = Json::object();
      for (const auto& [name, part] : value.fields()) object[name] = json(part);
      return object;
    }
    default: {
      Json list = Json::array();
      for (const Value& part : value.parts()) list.push_back(json(part));
      return list;
    }
  }
}

Json Stage::components(Variable& variable) const {
  Json list = Json::array();
  for (const Tensor& component : variable.components()) list.push_back(json(component));
  return list;
}

Json Stage::locals(const Value& value) const {
  Json list = Json::array();
  for (const Value& part : strategy.experimental_local_results(value)) list.push_back(json(part));
  return list;
}

ReplicaContext& replica() {
  return *get_replica_context();
}
int replica_id() {
  return replica().replica_id_in_sync_group();
}

void run_each(const Stage& stage, const std::function<void()>& function) {
  stage.strategy.run([&](const Value::Parts&) {
    function();
    return Value();
  });
}

std::unique_ptr<Strategy> strategy_of(const Case& spec, Worker& worker) {
  std::vector<Device*> devices(worker.devices().begin(), worker.devices().end());
  if (spec.strategy == "OneDevice") return std::make_unique<OneDeviceStrategy>(worker, *devices.front());
  if (spec.strategy == "MultiWorkerMirrored" || spec.strategy == "collective")
    return std::make_unique<MultiWorkerMirroredStrategy>(worker);
  if (spec.strategy == "CentralStorage") return std::make_unique<CentralStorageStrategy>(worker, devices);
  if (spec.strategy == "ParameterServer") return std::make_unique<ParameterServerStrategy>(worker, devices);
  if (spec.strategy == "Mirrored" || spec.strategy == "any" || spec.strategy == "none")
    return std::make_unique<MirroredStrategy>(worker, devices);
  throw ValueError("a case wants strategy '" + spec.strategy + "'");
}

CaseFunction staged(std::function<Json(Stage& stage)> steps) {
  return [steps = std::move(steps)](const CaseWorld& world) -> Json {
    const std::vector<Json> results = world.on_workers(world.workers(), world.replicas(), [&](Worker& worker) -> Json {
      if (world.spec().strategy == "default") {
        Stage stage(worker, default_strategy(), world.spec());
        return steps(stage);
      }
      const std::unique_ptr<Strategy> strategy = strategy_of(world.spec(), worker);
      Stage stage(worker, *strategy, world.spec());
      return steps(stage);
    });
    return results.size() == 1 ? results.front() : Json(results);
  };
}

}  // namespace tandem
