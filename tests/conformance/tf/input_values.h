// What input pipelines give, as JSON: elements on the host, and steps brought back from the replicas' devices.
#pragma once

#include "engine/worker.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/input/distributed_dataset_v1.h"
#include "strategies/strategy/regroup.h"
#include "tests/conformance/tf/case.h"

namespace tandem {

// Nested like the shape. `value_at` gives the JSON of an element by its number.
template <typename ValueAt>
Json nested_json(std::span<const std::int64_t> shape, std::int64_t first, const ValueAt& value_at) {
  if (shape.empty()) return value_at(first);
  Json rows = Json::array();
  std::int64_t row = 1;
  for (const std::int64_t dimension : shape.subspan(1)) row *= dimension;
  for (std::int64_t i = 0; i < shape[0]; ++i) rows.push_back(nested_json(shape.subspan(1), first + i * row, value_at));
  return rows;
}

inline Json to_json(const HostTensor& tensor) {
  return nested_json(tensor.shape().dimensions(), 0,
                     [&](std::int64_t i) { return tensor.is_text() ? Json(tensor.text(i)) : Json(tensor.number(i)); });
}

inline Json to_json(const Element& element) {
  if (!element.is_nest()) return to_json(element.tensor());
  const Structure& structure = *element.structure();
  Json parts = structure.kind == Structure::Kind::map ? Json::object() : Json::array();
  for (std::size_t i = 0; i < structure.parts.size(); ++i) {
    if (structure.kind == Structure::Kind::map) {
      parts[structure.names[i]] = to_json(element[i]);
    } else {
      parts.push_back(to_json(element[i]));
    }
  }
  return parts;
}

inline Json to_json(const Dataset& dataset) {
  Json all = Json::array();
  DatasetIterator elements = dataset.iterator();
  while (const auto element = elements.next()) all.push_back(to_json(*element));
  return all;
}

// Brings the values to the host. The iterator has made the device's compute stream wait for them.
inline Json to_json(Worker& worker, const Tensor& tensor) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().synchronize();
  worker.cpu().compute_stream().copy(host, tensor);
  worker.cpu().compute_stream().synchronize();
  const auto values = [&]<typename T>(T) {
    return nested_json(host.shape().dimensions(), 0,
                       [&](std::int64_t i) { return Json(host.values<T>()[static_cast<std::size_t>(i)]); });
  };
  switch (host.dtype()) {
    case DType::f32:
      return values(float{});
    case DType::f64:
      return values(double{});
    case DType::i32:
      return values(std::int32_t{});
    default:
      return values(std::int64_t{});
  }
}

// One replica's part, or a value that is not distributed.
inline Json to_json(Worker& worker, const Value& value) {
  if (value.is(ValueKind::tensor)) return to_json(worker, value.tensor());
  if (value.is(ValueKind::text)) return value.text();
  if (value.is(ValueKind::map)) {
    Json fields = Json::object();
    for (const auto& [name, field] : value.fields()) fields[name] = to_json(worker, field);
    return fields;
  }
  Json parts = Json::array();
  for (const Value& part : value.parts()) parts.push_back(to_json(worker, part));
  return parts;
}

// One entry for every local replica.
inline Json step_json(Worker& worker, const Value& step, std::size_t replicas) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < replicas; ++i) {
    parts.push_back(to_json(worker, select_replica(static_cast<int>(i), step)));
  }
  return parts;
}

inline std::vector<Device*> devices_of(Worker& worker) {
  return {worker.devices().begin(), worker.devices().end()};
}

// All steps to the end.
inline Json steps_of(Worker& worker, DistributedIterator iterator) {
  Json steps = Json::array();
  while (const auto step = iterator.next()) steps.push_back(step_json(worker, *step, worker.devices().size()));
  return steps;
}

inline Json steps_of(Worker& worker, const DistributedDataset& dataset) {
  return steps_of(worker, dataset.iterator());
}

inline Json steps_of(Worker& worker, DistributedIteratorV1& iterator) {
  Json steps = Json::array();
  const Json end = error_of([&] {
    for (;;) steps.push_back(step_json(worker, iterator.get_next(), worker.devices().size()));
  });
  return end["error"] == "OutOfRange" ? steps : end;
}

// Where each worker has one replica: its parts without the list around them.
inline Json only_replica(const Json& steps) {
  Json parts = Json::array();
  for (const Json& step : steps) parts.push_back(step.at(0));
  return parts;
}

// The worker as one of `workers` that run the same program. All replicas are in sync; without `sync` it is not known.
inline InputWorkers input_workers(Worker& worker, int workers = 1, int pipeline = 0, bool sync = true) {
  const int replicas = static_cast<int>(worker.devices().size()) * workers;
  return {.worker = worker,
          .devices = devices_of(worker),
          .num_workers = workers,
          .pipeline_id = pipeline,
          .num_replicas_in_sync = sync ? replicas : 0};
}

// One that asks the other workers, which must run too, in the order of their indices.
inline InputWorkers agreeing_workers(Worker& worker) {
  InputWorkers workers = input_workers(worker, worker.count(), worker.index());
  std::vector<DeviceId> first_devices;
  for (int task = 0; task < worker.count(); ++task) {
    DeviceId id = worker.devices()[0]->id();
    id.task = task;
    first_devices.push_back(id);
  }
  workers.any_worker_has_data = agree_over(worker, std::move(first_devices));
  return workers;
}

inline Json to_json(const InputContext& context) {
  return {{"num_replicas_in_sync", context.num_replicas_in_sync()},
          {"num_input_pipelines", context.num_input_pipelines()},
          {"input_pipeline_id", context.input_pipeline_id()}};
}

inline Json shape_json(const TensorSpec& spec) {
  Json dimensions = Json::array();
  for (const std::int64_t dimension : spec.dimensions) {
    dimensions.push_back(dimension == TensorSpec::kUnknown ? Json() : Json(dimension));
  }
  return dimensions;
}

// A dataset of f32 scalars.
inline Dataset numbers(std::vector<float> values) {
  return Dataset::from_tensor_slices(HostTensor::vector(std::move(values)));
}

}  // namespace tandem
