#include "strategies/cross_device_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/errors.h"
#include "strategies/hierarchical_copy_all_reduce.h"
#include "strategies/nccl_all_reduce.h"
#include "strategies/packing.h"
#include "strategies/reduction_to_one_device.h"

namespace tandem {
namespace {

Op as_communication(Op op) {
  op.category = Category::communication;
  return op;
}

void check_groups(const std::vector<TensorGroup>& groups, std::size_t devices) {
  for (const TensorGroup& group : groups) {
    if (group.size() != devices) {
      throw ValueError(fmt::format("a reduction over {} devices got {} tensors", devices, group.size()));
    }
    for (const Tensor& tensor : group) {
      if (tensor.shape() != group.front().shape() || tensor.dtype() != group.front().dtype()) {
        throw ValueError(fmt::format("replicas reduce tensors of different shapes: {} and {}",
                                     group.front().shape().text(), tensor.shape().text()));
      }
    }
  }
}

}  // namespace

CrossDeviceOps::CrossDeviceOps(Worker& worker, std::vector<Device*> devices, Packing packing)
    : worker_(worker), devices_(std::move(devices)), packing_(packing) {
  check_packing(packing_);
}

std::vector<Event> CrossDeviceOps::all_reduce(ReduceOp op, const std::vector<TensorGroup>& groups) {
  check_groups(groups, devices_.size());
  if (devices_.size() == 1) return {Event()};  // one replica: the value is its own sum and mean
  for (std::size_t d = 0; d < devices_.size(); ++d) stream(d).wait(devices_[d]->compute_stream().record());
  const PackedGroups packed(groups, packing_, devices_);
  packed.pack();
  sum_in_place(packed.groups());
  if (op == ReduceOp::mean) {
    const double share = 1.0 / static_cast<double>(devices_.size());
    for (const TensorGroup& group : packed.groups()) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        stream(d).launch(as_communication(op::scale_add(group[d], group[d], share, 0)));
      }
    }
  }
  packed.unpack();
  std::vector<Event> ends;
  for (std::size_t d = 0; d < devices_.size(); ++d) ends.push_back(stream(d).record());
  return ends;
}

Tensor CrossDeviceOps::reduce_to(ReduceOp op, const TensorGroup& group, Device& destination) {
  check_groups({group}, devices_.size());
  Stream& stream = destination.stream(kCommunicationStream);
  for (Device* device : devices_) stream.wait(device->compute_stream().record());
  const Tensor sum = destination.allocate(group.front().dtype(), group.front().shape());
  const Tensor part = destination.allocate(group.front().dtype(), group.front().shape());
  for (std::size_t d = 0; d < group.size(); ++d) {
    stream.copy(d == 0 ? sum : part, group[d]);
    if (d > 0) stream.launch(as_communication(op::elementwise(kernel::Binary::add, sum, sum, part)));
  }
  if (op == ReduceOp::mean) {
    stream.launch(as_communication(op::scale_add(sum, sum, 1.0 / static_cast<double>(group.size()), 0)));
  }
  destination.compute_stream().wait(stream.record());
  return sum;
}

void CrossDeviceOps::add_from_peer(std::size_t to_device, const Tensor& to, const Tensor& from) {
  const Tensor staged = devices_[to_device]->allocate(from.dtype(), from.shape());
  stream(to_device).copy(staged, from);
  stream(to_device).launch(as_communication(op::elementwise(kernel::Binary::add, to, to, staged)));
}

void CrossDeviceOps::copy_to_peer(std::size_t to_device, const Tensor& to, std::size_t from_device,
                                  const Tensor& from) {
  order_after(to_device, from_device);
  stream(to_device).copy(to, from);
}

std::vector<std::string> cross_device_ops_names() {
  return {"auto", "hierarchical_copy", "nccl", "reduction_to_one_device"};
}

std::unique_ptr<CrossDeviceOps> make_cross_device_ops(std::string_view name, Worker& worker,
                                                      std::vector<Device*> devices, Packing packing) {
  if (name.empty() || name == "auto" || name == "nccl") {
    return std::make_unique<NcclAllReduce>(worker, std::move(devices), packing);
  }
  if (name == "hierarchical_copy") {
    return std::make_unique<HierarchicalCopyAllReduce>(worker, std::move(devices), packing);
  }
  if (name == "reduction_to_one_device") {
    return std::make_unique<ReductionToOneDevice>(worker, std::move(devices), packing);
  }
  const std::vector<std::string> known = cross_device_ops_names();
  std::string message = fmt::format("unknown cross-device operations '{}' (known: {})", name, fmt::join(known, ", "));
  if (const std::string near = nearest_name(name, known); !near.empty())
    message += fmt::format("; did you mean '{}'?", near);
  throw ValueError(message);
}

}  // namespace tandem
