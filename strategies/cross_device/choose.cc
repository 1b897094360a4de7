#include "strategies/cross_device/choose.h"

#include <algorithm>
#include <array>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/cluster/device_names.h"
#include "strategies/cluster/device_spec.h"

namespace tandem {
namespace {

// NVLink neighbours of the eight GPUs of a DGX-1.
const std::array<std::set<int>, 8> kDgx1Links = {
    {{1, 2, 3, 4}, {0, 2, 3, 5}, {0, 1, 3, 6}, {0, 1, 2, 7}, {0, 5, 6, 7}, {1, 4, 6, 7}, {2, 4, 5, 7}, {3, 4, 5, 6}}};

bool is_like_dgx1(const std::vector<std::vector<int>>& links) {
  if (links.size() < kDgx1Links.size()) return false;
  for (std::size_t i = 0; i < kDgx1Links.size(); ++i) {
    std::set<int> others(links[i].begin(), links[i].end());
    others.erase(static_cast<int>(i));
    if (others != kDgx1Links[i]) return false;
  }
  return true;
}

std::string type_of(const std::string& device) {
  return DeviceSpec::parse(canonicalize_device(device)).type.value();
}

bool all_are(const std::vector<std::string>& devices, const char* type) {
  return std::all_of(devices.begin(), devices.end(),
                     [&](const std::string& device) { return type_of(device) == type; });
}

bool any_is(const std::vector<std::string>& devices, const char* type) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const std::string& device) { return type_of(device) == type; });
}

}  // namespace

std::string_view name_of(CrossDeviceAlgorithm algorithm) {
  switch (algorithm) {
    case CrossDeviceAlgorithm::reduction_to_one_device:
      return "ReductionToOneDevice";
    case CrossDeviceAlgorithm::nccl:
      return "NcclAllReduce";
    case CrossDeviceAlgorithm::hierarchical_copy:
      return "HierarchicalCopyAllReduce";
    case CrossDeviceAlgorithm::collective:
      return "CollectiveAllReduce";
  }
  return "?";
}

CrossDeviceChoice choose_by_links(const std::vector<std::vector<int>>& links) {
  if (!is_like_dgx1(links)) return {.algorithm = CrossDeviceAlgorithm::nccl, .num_packs = 1};
  return {.algorithm = CrossDeviceAlgorithm::hierarchical_copy, .num_packs = static_cast<int>(links.size())};
}

CrossDeviceChoice choose_automatically_v1(const std::vector<std::string>& devices,
                                          const std::vector<LinkedDevice>& visible) {
  std::set<std::string> requested;
  for (const std::string& device : devices) requested.insert(canonicalize_device(device));
  std::vector<std::vector<int>> links;
  for (const LinkedDevice& device : visible) {
    if (!requested.contains(canonicalize_device(device.name))) continue;
    if (type_of(device.name) != "GPU") return {};
    links.push_back(device.links);
  }
  return links.size() == requested.size() ? choose_by_links(links) : CrossDeviceChoice{};
}

CrossDeviceChoice choose_automatically_v2(const std::vector<std::string>& devices, bool has_nccl_kernel,
                                          GpuCounts gpus) {
  if (gpus.logical != gpus.physical || !all_are(devices, "GPU") || !has_nccl_kernel) return {};
  return {.algorithm = CrossDeviceAlgorithm::nccl, .num_packs = 1};
}

CrossDeviceChoice choose_for_mirrored(const std::vector<std::string>& devices, GpuCounts gpus, bool eager) {
  const bool all_gpus = all_are(devices, "GPU");
  if (!eager && !all_gpus) return {};
  if (any_is(devices, "CPU") && any_is(devices, "GPU")) return {};
  const bool ring = !all_gpus || gpus.physical < gpus.logical;
  return {.algorithm = CrossDeviceAlgorithm::collective,
          .implementation = ring ? CommunicationImplementation::ring : CommunicationImplementation::nccl};
}

CrossDeviceChoice choose_for_dtype(const CrossDeviceChoice& chosen, DType dtype) {
  return dtype == DType::i32 ? CrossDeviceChoice{} : chosen;
}

CrossDeviceChoice choose_for_batch(const CrossDeviceChoice& chosen, std::span<const DType> dtypes) {
  CrossDeviceChoice common = chosen;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const CrossDeviceChoice one = choose_for_dtype(chosen, dtypes[i]);
    if (i > 0 && one != common) {
      throw ValueError("values of a batch reduction need different cross-device ops: reduce 32-bit integers apart");
    }
    common = one;
  }
  return common;
}

}  // namespace tandem
