#include "scenarios/import/mesh_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>

namespace tandem {
namespace {

constexpr double kMostDevices = 1 << 30;
constexpr double kMostBatch = 1 << 28;

double approximate_product(std::initializer_list<std::int64_t> factors) {
  double all = 1;
  for (const std::int64_t factor : factors) all *= static_cast<double>(factor);
  return all;
}

// Returns the first axis with which devices cannot be divided into groups.
MeshPart axis_that_does_not_divide(const MeshAxes& axes, std::int64_t world) {
  if (world % axes.tensor != 0) return MeshPart::tensor;
  return world / axes.tensor % axes.pipeline != 0 ? MeshPart::pipeline : MeshPart::context;
}

}  // namespace

int least_workers(const MeshAxes& axes, int devices) {
  const double replica = approximate_product({axes.tensor, axes.pipeline, axes.context});
  if (replica > kMostDevices) return 1;  // refused by mesh_sizes()
  const std::int64_t least = (axes.of_replica() + devices - 1) / devices;
  const std::int64_t data = axes.expert / std::gcd(axes.expert, axes.with_experts());  // is a multiple of it
  const bool is_refused =
      least * devices % axes.of_replica() != 0 || replica * static_cast<double>(data) > kMostDevices;
  if (is_refused) return static_cast<int>(least);
  const std::int64_t all = axes.of_replica() * data;
  return static_cast<int>(all / std::gcd<std::int64_t>(all, devices));
}

MeshSizes mesh_sizes(const MeshAxes& axes, int workers, int devices, std::optional<std::int64_t> batch,
                     const RefuseMesh& refuse) {
  MeshSizes sizes{.workers = workers, .devices = devices};
  const std::int64_t world = static_cast<std::int64_t>(workers) * devices;
  if (approximate_product({axes.tensor, axes.pipeline, axes.context}) > kMostDevices ||
      world % axes.of_replica() != 0) {
    refuse(axis_that_does_not_divide(axes, world),
           fmt::format("{} devices cannot be divided into groups of tensor {} x pipeline {} x context {}", world,
                       axes.tensor, axes.pipeline, axes.context));
  }
  sizes.data = world / axes.of_replica();
  const std::int64_t with_experts = sizes.data * axes.with_experts();
  if (with_experts % axes.expert != 0) {
    std::string more;
    if (axes.expert_tensor > 0) more = fmt::format(" x tensor {}", axes.tensor);
    if (axes.expert_tensor > 1) more += fmt::format(" / {} of each expert", axes.expert_tensor);
    refuse(MeshPart::experts, fmt::format("{} does not divide the {} devices of data {} x context {}{}", axes.expert,
                                          with_experts, sizes.data, axes.context, more));
  }
  if (approximate_product({sizes.data, axes.micro_batch, axes.pipeline}) > kMostBatch) {
    refuse(MeshPart::batch, fmt::format("{} replicas x micro-batches of {} x {} stages are more than any batch",
                                        sizes.data, axes.micro_batch, axes.pipeline));
  }
  sizes.batch = batch.value_or(sizes.data * axes.micro_batch * std::max<std::int64_t>(1, axes.pipeline));
  if (sizes.batch % (axes.micro_batch * sizes.data) != 0) {
    refuse(MeshPart::batch, fmt::format("{} is no multiple of {} replicas x micro-batches of {}", sizes.batch,
                                        sizes.data, axes.micro_batch));
  }
  sizes.micro_batches = sizes.batch / sizes.data / axes.micro_batch;
  return sizes;
}

}  // namespace tandem
