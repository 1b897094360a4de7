#include "strategies/input/staging.h"

#include "engine/worker.h"
#include "strategies/base/errors.h"

namespace tandem {
namespace {

Value texts(const HostTensor& tensor) {
  if (tensor.rank() == 0) return Value(tensor.text());
  Value::Parts all;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) all.emplace_back(tensor.text(i));
  return Value::list(std::move(all));
}

// Copies a tensor to host memory that devices can copy from. Gathers values only if the engine carries any. Memory of
// another process is written by way of this worker's.
Tensor on_host(Worker& worker, Device& host, const HostTensor& from) {
  Tensor tensor = host.allocate(*from.dtype(), from.shape());
  if (tensor.has_values() && !tensor.buffer().is_host_accessible()) {
    Stream& stream = host.stream(kInputStream);
    stream.copy(tensor, on_host(worker, worker.cpu(), from), Category::input);
    stream.synchronize();
    return tensor;
  }
  worker.took_input(0, static_cast<std::int64_t>(tensor.size_bytes()));
  const auto fill = [&]<typename T>(T) {
    if (const std::span<T> to = tensor.values<T>(); !to.empty()) from.copy_to(to);
  };
  switch (*from.dtype()) {
    case DType::f32:
      fill(float{});
      break;
    case DType::f64:
      fill(double{});
      break;
    case DType::i32:
      fill(std::int32_t{});
      break;
    case DType::i64:
      fill(std::int64_t{});
      break;
    default:
      TANDEM_UNREACHABLE("a host tensor of a type it cannot have");
  }
  return tensor;
}

Value place(Worker& worker, Device& host, Device& device, const HostTensor& from, bool fetch_to_device) {
  if (from.is_text()) return texts(from);
  Tensor here = on_host(worker, host, from);
  if (!fetch_to_device) return here;
  Tensor there = device.allocate(here.dtype(), here.shape());
  device.stream(kInputStream).copy(there, here, Category::input);
  return there;
}

// Nests the components, which are given in order, as the structure says.
Value structured(const Structure& structure, const std::vector<Value>& components, std::size_t& next) {
  if (structure.kind == Structure::Kind::leaf) return components[next++];
  if (structure.kind == Structure::Kind::map) {
    Value::Fields fields;
    for (std::size_t i = 0; i < structure.parts.size(); ++i) {
      fields.emplace(structure.names[i], structured(structure.parts[i], components, next));
    }
    return Value::map(std::move(fields));
  }
  Value::Parts parts;
  for (const Structure& part : structure.parts) parts.push_back(structured(part, components, next));
  return structure.kind == Structure::Kind::list ? Value::list(std::move(parts)) : Value::tuple(std::move(parts));
}

}  // namespace

StagedElements stage(Worker& worker, Device& host, const std::vector<Device*>& devices,
                     const std::vector<Element>& elements, bool fetch_to_device) {
  const Structure& structure = *elements.front().structure();
  if (structure.kind == Structure::Kind::dataset) throw TypeError("a dataset of datasets cannot be brought to devices");
  StagedElements staged;
  std::vector<Value::Parts> parts(elements.front().components().size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    for (std::size_t c = 0; c < parts.size(); ++c) {
      parts[c].push_back(place(worker, host, *devices[d], elements[d].components()[c], fetch_to_device));
    }
    if (fetch_to_device) staged.ready.push_back(devices[d]->stream(kInputStream).record());
  }
  std::vector<Value> components;
  for (Value::Parts& component : parts) {
    components.push_back(component.size() == 1 ? component.front() : Value::per_replica(std::move(component)));
  }
  std::size_t next = 0;
  staged.value = structured(structure, components, next);
  return staged;
}

}  // namespace tandem
