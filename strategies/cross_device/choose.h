// Which implementation of the cross-device operations fits given devices, as TensorFlow chooses. Pure functions, for
// any thread; device texts as in DeviceSpec::parse.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/communication_options.h"
#include "topologies/base/dtype.h"

namespace tandem {

enum class CrossDeviceAlgorithm : std::uint8_t { reduction_to_one_device, nccl, hierarchical_copy, collective };
std::string_view name_of(CrossDeviceAlgorithm algorithm);  // "ReductionToOneDevice", "NcclAllReduce", ...

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

// TensorFlow 1: hierarchical copy, one pack a device, where 8 devices or more are linked as in a DGX-1 (a device may
// list itself); else nccl.
CrossDeviceChoice choose_by_links(const std::vector<std::vector<int>>& links);
// TensorFlow 1: one device where a device is not visible or no GPU; else by the links of the visible ones.
CrossDeviceChoice choose_automatically_v1(const std::vector<std::string>& devices,
                                          const std::vector<LinkedDevice>& visible);

// How many GPUs the machine has, and into how many devices they are split. They differ for virtual GPUs.
struct GpuCounts {
  int physical = 0, logical = 0;
};
// TensorFlow 2: nccl where every device is a GPU of its own and there is a kernel for it; else one device.
CrossDeviceChoice choose_automatically_v2(const std::vector<std::string>& devices, bool has_nccl_kernel,
                                          GpuCounts gpus = {});

// What MirroredStrategy takes unless told otherwise: collectives (RING on CPUs and virtual GPUs, NCCL on GPUs), but one
// device for a mix of kinds, and in graph mode (not eager) for anything but GPUs.
CrossDeviceChoice choose_for_mirrored(const std::vector<std::string>& devices, GpuCounts gpus = {}, bool eager = true);

// 32-bit integers are reduced on one device whatever was chosen.
CrossDeviceChoice choose_for_dtype(const CrossDeviceChoice& chosen, DType dtype);
// For values that are reduced together. ValueError when they need different implementations.
CrossDeviceChoice choose_for_batch(const CrossDeviceChoice& chosen, std::span<const DType> dtypes);

}  // namespace tandem
