#include "strategies/cross_device/choose.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/engine.h"
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

std::vector<std::string> texts_of(std::span<Device* const> devices) {
  std::vector<std::string> texts;
  for (const Device* device : devices) texts.push_back(device->id().text());
  return texts;
}

std::vector<Hardware> gpus_of(const Worker& worker) {
  std::vector<Hardware> gpus = worker.capabilities().hardware;
  std::erase_if(gpus, [](const Hardware& hardware) { return hardware.type != DeviceType::gpu; });
  return gpus;
}

int logical_gpus(const Worker& worker) {
  return static_cast<int>(std::count_if(worker.devices().begin(), worker.devices().end(),
                                        [](const Device* device) { return device->id().type == DeviceType::gpu; }));
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
  TANDEM_UNREACHABLE("a CrossDeviceAlgorithm");
}

std::string_view option_name_of(CrossDeviceAlgorithm algorithm) {
  switch (algorithm) {
    case CrossDeviceAlgorithm::reduction_to_one_device:
      return "reduction_to_one_device";
    case CrossDeviceAlgorithm::nccl:
      return "nccl";
    case CrossDeviceAlgorithm::hierarchical_copy:
      return "hierarchical_copy";
    case CrossDeviceAlgorithm::collective:
      return "collective";
  }
  TANDEM_UNREACHABLE("a CrossDeviceAlgorithm");
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

CrossDeviceChoice choose_automatically_v1(const Worker& worker, std::span<Device* const> devices) {
  const std::vector<Hardware> gpus = gpus_of(worker);
  std::vector<LinkedDevice> visible;
  for (const Device* device : worker.devices()) {
    const auto number = static_cast<std::size_t>(device->id().index);
    const bool is_known = device->id().type == DeviceType::gpu && !gpus.empty();
    visible.push_back({device->id().text(), is_known ? gpus[number % gpus.size()].links : std::vector<int>{}});
  }
  return choose_automatically_v1(texts_of(devices), visible);
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

CrossDeviceChoice choose_for_mirrored(const Worker& worker, std::span<Device* const> devices) {
  const int physical = static_cast<int>(gpus_of(worker).size());
  return choose_for_mirrored(texts_of(devices), {.physical = physical, .logical = logical_gpus(worker)});
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
