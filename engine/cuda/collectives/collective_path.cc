#include "engine/cuda/collectives/collective_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "topologies/base/error.h"

namespace tandem::cuda {

int gpu_of(int logical_device, int gpus) {
  TANDEM_CHECK(logical_device >= 0 && gpus > 0, "a logical device without a GPU");
  return logical_device % gpus;
}

CollectivePath path_for(std::span<const int> gpus) {
  const std::set<int> distinct(gpus.begin(), gpus.end());
  return distinct.size() == gpus.size() ? CollectivePath::nccl : CollectivePath::copies;
}

std::string path_text(std::span<const int> gpus) {
  const std::set<int> distinct(gpus.begin(), gpus.end());
  const std::string names = fmt::format("GPU{} {}", distinct.size() == 1 ? "" : "s", fmt::join(distinct, ", "));
  if (path_for(gpus) == CollectivePath::nccl) return "NCCL on " + names;
  return fmt::format("copies and add kernels ({} logical devices on {})", gpus.size(), names);
}

}  // namespace tandem::cuda
