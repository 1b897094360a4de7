#include "strategies/parallel/layout/device_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

void check_axes(const std::vector<MeshAxis>& axes, std::size_t devices) {
  std::set<std::string> names;
  std::string product;
  std::size_t needed = 1;
  for (const MeshAxis& axis : axes) {
    if (!names.insert(axis.name).second) throw ValueError(fmt::format("two axes are named '{}'", axis.name));
    if (axis.size < 1) throw ValueError(fmt::format("axis '{}' has size {}, must be at least 1", axis.name, axis.size));
    needed *= static_cast<std::size_t>(axis.size);
    product += fmt::format("{}{} {}", product.empty() ? "" : " x ", axis.name, axis.size);
  }
  if (needed != devices)
    throw ValueError(fmt::format("a mesh of {} needs {} devices, found {}", product, needed, devices));
}

}  // namespace

DeviceMesh::DeviceMesh(Worker& worker, std::vector<DeviceId> devices, std::vector<MeshAxis> axes)
    : worker_(worker), devices_(std::move(devices)), axes_(std::move(axes)) {
  check_axes(axes_, devices_.size());
  for (int rank = 0; rank < device_count(); ++rank) {
    const auto local = std::find_if(worker.devices().begin(), worker.devices().end(),
                                    [&](const Device* candidate) { return candidate->id() == device(rank); });
    if (local == worker.devices().end() || !worker.runs(**local)) continue;
    local_ranks_.push_back(rank);
    local_devices_.push_back(*local);
  }
}

DeviceMesh::Step DeviceMesh::step_along(std::string_view axis) const {
  int stride = 1;
  for (auto candidate = axes_.rbegin(); candidate != axes_.rend(); ++candidate) {
    if (candidate->name == axis) return {.stride = stride, .size = candidate->size};
    stride *= candidate->size;
  }
  return {};
}

int DeviceMesh::size(std::string_view axis) const {
  return step_along(axis).size;
}

int DeviceMesh::coordinate(int rank, std::string_view axis) const {
  const Step step = step_along(axis);
  return step.stride == 0 ? 0 : rank / step.stride % step.size;
}

std::vector<int> DeviceMesh::group(int rank, std::string_view axis) const {
  const Step step = step_along(axis);
  const int first = rank - coordinate(rank, axis) * step.stride;
  std::vector<int> ranks;
  for (int i = 0; i < step.size; ++i) ranks.push_back(first + i * step.stride);
  return ranks;
}

Communicator& DeviceMesh::communicator(int rank, std::string_view axis) const {
  std::vector<DeviceId> ids;
  for (const int member : group(rank, axis)) ids.push_back(device(member));
  return worker_.communicator(ids);
}

}  // namespace tandem
