// tf.distribute.HierarchicalCopyAllReduce, made for eight GPUs in two cliques of four (DGX-1): tensor i is summed on a
// main device in each half of the devices, the two mains exchange their sums, and each copies to its half.
//
// The mains of tensor i are devices i mod n and, in the other half, (i mod n + n/2) mod n. With an odd number of
// devices the second half is the larger one.
#pragma once

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

class HierarchicalCopyAllReduce final : public CrossDeviceOps {
 public:
  HierarchicalCopyAllReduce(Worker& worker, std::vector<Device*> devices, Packing packing)
      : CrossDeviceOps(worker, std::move(devices), packing) {}
  std::string_view name() const override { return "hierarchical_copy"; }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  void gather_half(const TensorGroup& group, std::size_t main, std::size_t first, std::size_t end);
  void spread_half(const TensorGroup& group, std::size_t main, std::size_t first, std::size_t end);
};

}  // namespace tandem
