#include "strategies/parallel/layout/mesh_layout.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {
namespace {

constexpr const char* kData = "data";
constexpr const char* kContext = "context";
constexpr const char* kTensor = "tensor";
constexpr const char* kPipeline = "pipeline";

// As ParallelOptions::rank_of() counts.
std::vector<MeshAxis> axes_of(const ParallelOptions& options) {
  const MeshAxis stages{.name = kPipeline, .size = options.pipeline}, replicas{.name = kData, .size = options.data};
  const MeshAxis tokens{.name = kContext, .size = options.context}, parts{.name = kTensor, .size = options.tensor};
  if (options.axis_order == AxisOrder::tensor_pipeline_data) return {replicas, stages, tokens, parts};
  return {stages, replicas, tokens, parts};
}

}  // namespace

MeshLayout::MeshLayout(Worker& worker, const ParallelOptions& options)
    : worker_(worker), options_(options), mesh_(worker, devices_in_sync(worker), axes_of(options)) {
  for (std::size_t i = 0; i < mesh_.local_devices().size(); ++i) {
    const int rank = mesh_.local_ranks()[i];
    members_.push_back({.device = mesh_.local_devices()[i],
                        .rank = rank,
                        .place = {.data = mesh_.coordinate(rank, kData),
                                  .context = mesh_.coordinate(rank, kContext),
                                  .tensor = mesh_.coordinate(rank, kTensor),
                                  .pipeline = mesh_.coordinate(rank, kPipeline)},
                        .groups = groups_of(rank)});
  }
}

// Returns the ranks with the same stage and part of a layer, along data x context.
std::vector<int> MeshLayout::along_replicas(int rank) const {
  std::vector<int> ranks;
  for (int place = 0; place < options_.data * options_.context; ++place) {
    ranks.push_back(options_.rank_of(place, options_.stage_of_rank(rank), rank % options_.tensor));
  }
  return ranks;
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
  MeshGroups groups{.tensor = group(mesh_.communicator(rank, kTensor)),
                    .context = options_.context > 1 ? group(mesh_.communicator(rank, kContext)) : nullptr,
                    .experts = options_.expert > 1 ? group(experts_of(rank)) : nullptr,
                    .activations = &mesh_.communicator(rank, kPipeline)};
  groups.expert_tensor = parts_of_expert(rank, *groups.tensor);
  groups.gradients = groups.activations;
  const int place = mesh_.coordinate(rank, kPipeline), mine = options_.stage_of(place, 0);
  // Two devices that share two stages make the groups of these in one order.
  if (options_.ways() > 1) set_groups_of_parameters(rank, std::min(mine, options_.stage_of(place, 1)), groups);
  set_groups_of_parameters(rank, mine, groups);
  if (options_.chunks() == 1) return groups;
  std::vector<DeviceId> backwards;
  for (const int member : mesh_.group(rank, kPipeline)) backwards.push_back(mesh_.device(member));
  std::reverse(backwards.begin(), backwards.end());
  groups.gradients = &worker_.communicator(backwards);
  return groups;
}

// Returns the neighbours along tensor that divide each expert with this one.
GroupCollectives* MeshLayout::parts_of_expert(int rank, GroupCollectives& tensor) {
  const int parts = options_.expert_parts();
  if (parts == options_.tensor) return &tensor;
  if (parts == 1) return nullptr;
  std::vector<int> ranks(static_cast<std::size_t>(parts));
  std::iota(ranks.begin(), ranks.end(), rank - mesh_.coordinate(rank, kTensor) % parts);
  return group(ranks);
}

// Returns the devices of a stage that have the same part of their experts, each of them after those with smaller ranks.
std::vector<int> MeshLayout::devices_with_experts(const std::vector<int>& replicas) const {
  const int parts = options_.expert_parts();
  std::vector<int> devices;
  for (const int replica : replicas) {
    const int place = mesh_.coordinate(replica, kTensor), first = replica - place + place % parts;
    for (int i = 0; i < options_.tensor; i += parts) devices.push_back(first + i);
  }
  return devices;
}

int MeshLayout::place_with_experts(int rank) const {
  return options_.place_with_experts(options_.place_of_rank(rank), mesh_.coordinate(rank, kTensor));
}

std::vector<int> MeshLayout::experts_of(int rank) const {
  const std::vector<int> devices = devices_with_experts(along_replicas(rank));
  const auto first = devices.begin() + place_with_experts(rank) / options_.expert * options_.expert;
  return {first, first + options_.expert};
}

// Devices with the same parameters are divided into groups of neighbours, and also into groups that have one member of
// each such group.
void MeshLayout::set_groups_of_parameters(int rank, int stage, MeshGroups& groups) {
  const std::vector<int> replicas = replicas_of(rank, stage);
  groups.data = groups.shards = group(replicas);
  if (options_.has_groups_of_experts()) {
    const auto part_of_experts = [&](int other) { return place_with_experts(other) % options_.expert; };
    std::vector<int> same;
    std::ranges::copy_if(devices_with_experts(replicas), std::back_inserter(same),
                         [&](int other) { return part_of_experts(other) == part_of_experts(rank); });
    groups.expert_data = group(same);
  }
  if (options_.replicate == 1) return;
  const auto shards = static_cast<std::ptrdiff_t>(replicas.size()) / options_.replicate;
  const std::ptrdiff_t place = std::ranges::find(replicas, rank) - replicas.begin();
  const auto first = replicas.begin() + place / shards * shards;
  groups.shards = group(std::vector<int>(first, first + shards));
  std::vector<int> copies;
  for (std::ptrdiff_t i = place % shards; i < std::ssize(replicas); i += shards) {
    copies.push_back(replicas[static_cast<std::size_t>(i)]);
  }
  groups.copies = group(copies);
}

// Where a stage is on two devices of a pipeline, workers with the one and the other take turns, so that each of them
// has the same neighbours in a ring.
std::vector<int> MeshLayout::replicas_of(int rank, int stage) const {
  if (options_.ways() == 1) return along_replicas(rank);
  const std::vector<int> pipeline = mesh_.group(rank, kPipeline);
  const auto group_at = [&](int chunk) {
    return along_replicas(pipeline[static_cast<std::size_t>(options_.place_of(stage, chunk))]);
  };
  const std::vector<int> one = group_at(0), other = group_at(1);
  int together = std::max(1, options_.per_worker / options_.tensor);  // places on a worker
  if (options_.axis_order == AxisOrder::tensor_pipeline_data && together > options_.context)
    together = options_.context * std::max(1, together / options_.context / options_.pipeline);
  together = std::gcd(together, static_cast<int>(one.size()));
  std::vector<int> replicas;
  for (auto first = one.begin(), second = other.begin(); first != one.end(); first += together, second += together) {
    replicas.insert(replicas.end(), first, first + together);
    replicas.insert(replicas.end(), second, second + together);
  }
  return replicas;
}

MeshMember MeshLayout::with_groups_of(const MeshMember& member, int chunk) {
  MeshMember with = member;
  if (options_.ways() > 1) {
    set_groups_of_parameters(member.rank, options_.stage_of(member.place.pipeline, chunk), with.groups);
  }
  return with;
}

GroupCollectives* MeshLayout::ends_of(const MeshMember& member) {
  const std::vector<int> members = mesh_.group(member.rank, kPipeline);
  const bool is_end = member.rank == members.front() || member.rank == members.back();
  if (!is_end || members.size() == 1) return nullptr;
  const std::array ends{mesh_.device(members.front()), mesh_.device(members.back())};
  return group(worker_.communicator(ends));
}

}  // namespace tandem
