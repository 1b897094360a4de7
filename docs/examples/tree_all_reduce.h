// Cross-device operations of one's own: a binary tree of copies. Devices 1, 3, 5, ... send their tensors to 0, 2, 4,
// ..., then 2, 6, ... to 0, 4, ..., and so on; the sum on device 0 goes back the same way.
//
//   MirroredStrategy strategy(worker, devices, std::make_shared<TreeAllReduce>(worker, devices));
#pragma once

#include "strategies/cross_device/cross_device_ops.h"

class TreeAllReduce final : public tandem::CrossDeviceOps {
 public:
  TreeAllReduce(tandem::Worker& worker, std::vector<tandem::Device*> devices, tandem::Packing packing = {})
      : CrossDeviceOps(worker, std::move(devices), packing) {}
  std::string_view name() const override { return "tree"; }

 private:
  void sum_in_place(const std::vector<tandem::TensorGroup>& groups) override {
    const std::size_t n = devices().size();
    std::size_t top = 1;
    while (top < n) top *= 2;
    for (const tandem::TensorGroup& group : groups) {
      for (std::size_t distance = 1; distance < n; distance *= 2) {
        for (std::size_t d = 0; d + distance < n; d += 2 * distance) {
          order_after(d, d + distance);  // the child's sum is complete
          add_from_peer(d, group[d], group[d + distance]);
          order_after(d + distance, d);  // the child's tensor has been read and may change
        }
      }
      for (std::size_t distance = top / 2; distance > 0; distance /= 2) {
        for (std::size_t d = 0; d + distance < n; d += 2 * distance) {
          copy_to_peer(d + distance, group[d + distance], d, group[d]);
          order_after(d, d + distance);  // the parent's tensor has been read
        }
      }
    }
  }
};
