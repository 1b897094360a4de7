#include "strategies/cross_device/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/values/shapes.h"

namespace tandem {
namespace {

std::int64_t elements_after(const Shape& shape, int axis) {
  std::int64_t elements = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) elements *= shape[i];
  return elements;
}

constexpr std::int64_t kShapeFields = 1 + Shape::kMaxRank;  // the rank, then the dimensions

std::vector<double> fields_of(const std::vector<Tensor>& parts) {
  std::vector<double> fields;
  for (const Tensor& part : parts) {
    const std::span<const std::int64_t> dimensions = part.shape().dimensions();
    fields.push_back(part.shape().rank());
    fields.insert(fields.end(), dimensions.begin(), dimensions.end());
    fields.resize(fields.size() + Shape::kMaxRank - dimensions.size());
  }
  return fields;
}

std::vector<Shape> shapes_from(const std::vector<double>& fields) {
  std::vector<Shape> shapes;
  for (auto field = fields.begin(); field != fields.end(); field += kShapeFields) {
    const std::vector<std::int64_t> dimensions(field + 1, field + 1 + static_cast<std::ptrdiff_t>(*field));
    shapes.emplace_back(std::span<const std::int64_t>(dimensions));
  }
  return shapes;
}

// Returns the shapes of every device of the group, in its order; where tensors hold no data, as if all were ours.
std::vector<Shape> exchanged_shapes(Worker& worker, const std::vector<DeviceId>& group,
                                    const std::vector<Tensor>& parts) {
  const std::vector<DeviceId> hosts = hosts_of(group);
  Device& host = worker.cpu();
  const std::vector<double> mine = fields_of(parts);
  const auto n = static_cast<std::int64_t>(mine.size());
  const Tensor own =
      host_tensor(host, DType::i64, {n}, [mine](std::int64_t i) { return mine[static_cast<std::size_t>(i)]; });
  const Tensor all = host.allocate(DType::i64, {n * static_cast<std::int64_t>(hosts.size())});
  const std::vector<Tensor> to = {all}, from = {own};
  const std::vector<Stream*> streams = {&host.compute_stream()};
  worker.communicator(hosts).all_gather(to, from, streams);
  const std::vector<double> fields = host_values(worker, all);
  return fields.empty() ? std::vector<Shape>(group.size(), parts.front().shape()) : shapes_from(fields);
}

void check_shapes(const std::vector<Shape>& shapes, int axis) {
  const Shape& first = shapes.front();
  for (const Shape& shape : shapes) {
    if (axis < 0 || axis >= shape.rank()) {
      throw InvalidArgumentError(fmt::format("gather along axis {} of shape {}, which has rank {}: the axis is {}",
                                             axis, shape.text(), shape.rank(),
                                             shape.rank() == 1 ? "0" : fmt::format("from 0 to {}", shape.rank() - 1)));
    }
    bool matches = shape.rank() == first.rank();
    for (int i = 0; matches && i < shape.rank(); ++i) matches = i == axis || shape[i] == first[i];
    if (!matches) {
      throw InvalidArgumentError(
          fmt::format("gather along axis {} of shapes {} and {}: all other dimensions must match", axis, first.text(),
                      shape.text()));
    }
  }
}

}  // namespace

std::vector<DeviceId> hosts_of(const std::vector<DeviceId>& group) {
  std::vector<DeviceId> hosts;
  std::set<std::pair<int, std::string_view>> known;
  for (const DeviceId& id : group) {
    if (!hosts.empty() && hosts.back().task == id.task && hosts.back().job == id.job) continue;
    if (!known.emplace(id.task, id.job).second) continue;
    hosts.push_back({.job = id.job, .task = id.task, .type = DeviceType::cpu, .index = 0});
  }
  return hosts;
}

Tensor gathered_part(Worker& worker, Device& device, const Value& part) {
  if (part.is(ValueKind::sparse)) throw NotImplementedError("gather does not support IndexedSlices");
  if (part.is(ValueKind::number)) {
    const double number = part.number();
    return copy_on(device, host_tensor(worker.cpu(), DType::f64, {1}, [number](std::int64_t) { return number; }));
  }
  const Tensor& tensor = part.tensor();
  return tensor.shape().rank() == 0 ? tensor.reshape({1}) : tensor;
}

void check_gather(const std::vector<Tensor>& parts, int axis) {
  std::vector<Shape> shapes;
  for (const Tensor& part : parts) shapes.push_back(part.shape());
  check_shapes(shapes, axis);
}

Tensor concatenated(Device& device, const std::vector<Tensor>& parts, int axis) {
  std::int64_t size = 0;
  for (const Tensor& part : parts) size += part.shape()[axis];
  Tensor whole = device.allocate(parts.front().dtype(), with_dimension(parts.front().shape(), axis, size));
  std::int64_t first = 0;
  for (const Tensor& part : parts) {
    if (part.element_count() > 0) {
      device.compute_stream().launch(as_communication(op::place_along(whole, copy_on(device, part), axis, first)));
    }
    first += part.shape()[axis];
  }
  return whole;
}

std::vector<Tensor> gather_over_group(Worker& worker, const std::vector<Device*>& devices,
                                      const std::vector<DeviceId>& group, const std::vector<Tensor>& parts, int axis) {
  const std::vector<Shape> shapes = exchanged_shapes(worker, group, parts);
  check_shapes(shapes, axis);
  std::vector<std::int64_t> sizes;
  for (const Shape& shape : shapes) sizes.push_back(shape[axis]);
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const Shape padded = with_dimension(parts.front().shape(), axis, longest);
  std::vector<Tensor> from, to;
  std::vector<Stream*> streams;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    from.push_back(devices[d]->allocate(parts[d].dtype(), padded));
    to.push_back(
        devices[d]->allocate(parts[d].dtype(), {padded.element_count() * static_cast<std::int64_t>(sizes.size())}));
    streams.push_back(&devices[d]->compute_stream());
    if (parts[d].element_count() > 0) {
      streams.back()->launch(as_communication(op::place_along(from[d], copy_on(*devices[d], parts[d]), axis, 0)));
    }
  }
  if (padded.element_count() > 0) worker.communicator(group).all_gather(to, from, streams);
  std::vector<Tensor> results;
  const std::int64_t inner = elements_after(padded, axis);
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= padded[i];
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const Tensor whole = devices[d]->allocate(parts[d].dtype(), with_dimension(padded, axis, total));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] * inner * outer == 0) continue;
      streams[d]->launch(
          as_communication(op::copy_blocks({.to = whole,
                                            .from = to[d],
                                            .count = outer,
                                            .elements = sizes[i] * inner,
                                            .to_first = first * inner,
                                            .to_stride = total * inner,
                                            .from_first = static_cast<std::int64_t>(i) * padded.element_count(),
                                            .from_stride = longest * inner})));
      first += sizes[i];
    }
    results.push_back(whole);
  }
  return results;
}

int all_reduce_over_hosts(Worker& worker, const std::vector<DeviceId>& group, const Tensor& tensor) {
  const std::vector<DeviceId> hosts = hosts_of(group);
  const std::vector<Tensor> buffers = {tensor};
  const std::vector<Stream*> streams = {&worker.cpu().compute_stream()};
  worker.communicator(hosts).all_reduce(buffers, Reduction::sum, streams);
  return static_cast<int>(hosts.size());
}

}  // namespace tandem
