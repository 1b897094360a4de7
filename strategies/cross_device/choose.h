// The rules by which TensorFlow chooses cross-device operations for given devices.
//
// All functions except those that take a Worker are pure. Threads: any. Device texts are as in DeviceSpec::parse.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/communication_options.h"
#include "topologies/base/dtype.h"

namespace tandem {

class Device;
class Worker;

enum class CrossDeviceAlgorithm : std::uint8_t { reduction_to_one_device, nccl, hierarchical_copy, collective };
std::string_view name_of(CrossDeviceAlgorithm algorithm);         // TensorFlow's class: "HierarchicalCopyAllReduce"
std::string_view option_name_of(CrossDeviceAlgorithm algorithm);  // for make_cross_device_ops: "hierarchical_copy"

struct CrossDeviceChoice {
  CrossDeviceAlgorithm algorithm = CrossDeviceAlgorithm::reduction_to_one_device;
  int num_packs = 0;                                                                    // of nccl, hierarchical_copy
  CommunicationImplementation implementation = CommunicationImplementation::automatic;  // of collective
  bool operator==(const CrossDeviceChoice&) const = default;
};

// A device of this machine and the indices of those it has a direct link to.
struct LinkedDevice {
  std::string name{};
  std::vector<int> links{};
};

// TensorFlow 1: hierarchical copy, with one pack per device, for 8 devices or more that are linked as in a DGX-1 (a
// device may list itself); otherwise nccl.
CrossDeviceChoice choose_by_links(const std::vector<std::vector<int>>& links);
// TensorFlow 1: reduction to one device where a device is no GPU or not visible; otherwise by the links.
CrossDeviceChoice choose_automatically_v1(const std::vector<std::string>& devices,
                                          const std::vector<LinkedDevice>& visible);
// The same for compute devices of `worker`, with the links that Capabilities::hardware names. Devices of other workers
// are not visible.
CrossDeviceChoice choose_automatically_v1(const Worker& worker, std::span<Device* const> devices);

// How many GPUs a machine has, and how many logical devices it offers on them.
struct GpuCounts {
  int physical = 0, logical = 0;
};
// TensorFlow 2's CrossDeviceOps that fit any strategy: nccl where each device is a GPU of its own and there is a kernel
// for it; otherwise reduction to one device.
CrossDeviceChoice choose_automatically_v2(const std::vector<std::string>& devices, bool has_nccl_kernel,
                                          GpuCounts gpus = {});

// TensorFlow 2's MirroredStrategy: collectives (RING on CPUs and on GPUs with several logical devices, NCCL on GPUs),
// but reduction to one device for CPUs and GPUs together, and in graph mode for anything but GPUs.
CrossDeviceChoice choose_for_mirrored(const std::vector<std::string>& devices, GpuCounts gpus = {}, bool eager = true);
// The same for devices of `worker`, in eager mode, with the GPUs that Capabilities::hardware names.
CrossDeviceChoice choose_for_mirrored(const Worker& worker, std::span<Device* const> devices);

// 32-bit integers are reduced on one device, whatever was chosen.
CrossDeviceChoice choose_for_dtype(const CrossDeviceChoice& chosen, DType dtype);
// The choice for values that are reduced together. Throws ValueError when they need different operations.
CrossDeviceChoice choose_for_batch(const CrossDeviceChoice& chosen, std::span<const DType> dtypes);

}  // namespace tandem
