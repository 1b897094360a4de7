#include "strategies/parallel/layout/mesh_layout.h"

#include <algorithm>
#include <array>

#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {
namespace {

constexpr const char* kData = "data";
constexpr const char* kTensor = "tensor";
constexpr const char* kPipeline = "pipeline";

std::vector<MeshAxis> axes_of(const ParallelOptions& options) {
  return {{.name = kPipeline, .size = options.pipeline},
          {.name = kData, .size = options.data * options.context},
          {.name = kTensor, .size = options.tensor}};
}

}  // namespace

MeshLayout::MeshLayout(Worker& worker, const ParallelOptions& options)
    : worker_(worker), options_(options), mesh_(worker, devices_in_sync(worker), axes_of(options)) {
  for (std::size_t i = 0; i < mesh_.local_devices().size(); ++i) {
    const int rank = mesh_.local_ranks()[i];
    members_.push_back({.device = mesh_.local_devices()[i],
                        .rank = rank,
                        .place = {.data = mesh_.coordinate(rank, kData) / options.context,
                                  .context = mesh_.coordinate(rank, kData) % options.context,
                                  .tensor = mesh_.coordinate(rank, kTensor),
                                  .pipeline = mesh_.coordinate(rank, kPipeline)},
                        .groups = groups_of(rank)});
  }
}

GroupCollectives* MeshLayout::group(Communicator& communicator) {
  std::unique_ptr<GroupCollectives>& group = groups_[&communicator];
  if (!group) group = std::make_unique<GroupCollectives>(worker_, communicator);
  return group.get();
}

GroupCollectives* MeshLayout::group(const std::vector<int>& ranks) {
  std::vector<DeviceId> devices;
  for (const int rank : ranks) devices.push_back(mesh_.device(rank));
  return group(worker_.communicator(devices));
}

MeshGroups MeshLayout::groups_of(int rank) {
  // Devices along data x context are divided into groups of neighbours, and also into groups that have one member of
  // each such group.
  const std::vector<int> replicas = mesh_.group(rank, kData);
  const int place = mesh_.coordinate(rank, kData);
  const auto neighbours = [&](int count) {
    const auto first = replicas.begin() + place / count * count;
    return group(std::vector<int>(first, first + count));
  };
  const auto one_of_each = [&](int count) {
    std::vector<int> ranks;
    for (std::size_t i = static_cast<std::size_t>(place % count); i < replicas.size();
         i += static_cast<std::size_t>(count)) {
      ranks.push_back(replicas[i]);
    }
    return group(ranks);
  };
  MeshGroups groups{.data = group(mesh_.communicator(rank, kData)),
                    .tensor = group(mesh_.communicator(rank, kTensor)),
                    .context = options_.context > 1 ? neighbours(options_.context) : nullptr,
                    .experts = options_.expert > 1 ? neighbours(options_.expert) : nullptr,
                    .expert_data = options_.expert > 1 ? one_of_each(options_.expert) : nullptr,
                    .activations = &mesh_.communicator(rank, kPipeline)};
  groups.shards = groups.data;
  if (options_.replicate > 1) {
    const int shards = options_.data * options_.context / options_.replicate;
    groups.shards = neighbours(shards);
    groups.copies = one_of_each(shards);
  }
  groups.gradients = groups.activations;
  if (options_.virtual_stages == 1) return groups;
  std::vector<DeviceId> backwards;
  for (const int member : mesh_.group(rank, kPipeline)) backwards.push_back(mesh_.device(member));
  std::reverse(backwards.begin(), backwards.end());
  groups.gradients = &worker_.communicator(backwards);
  return groups;
}

GroupCollectives* MeshLayout::ends_of(const MeshMember& member) {
  const std::vector<int> members = mesh_.group(member.rank, kPipeline);
  const bool is_end = member.rank == members.front() || member.rank == members.back();
  if (!is_end || members.size() == 1) return nullptr;
  const std::array ends{mesh_.device(members.front()), mesh_.device(members.back())};
  return group(worker_.communicator(ends));
}

void run_passes(std::span<const PipelineAction> actions, std::span<StageChunk* const> chunks) {
  for (const PipelineAction& action : actions) {
    StageChunk& chunk = *chunks[static_cast<std::size_t>(action.chunk)];
    switch (action.pass) {
      case PipelineAction::Pass::forward:
        chunk.forward(action.micro_batch);
        break;
      case PipelineAction::Pass::backward:
        chunk.backward(action.micro_batch);
        break;
      case PipelineAction::Pass::weights:
        chunk.weights(action.micro_batch);
        break;
    }
  }
}

}  // namespace tandem
