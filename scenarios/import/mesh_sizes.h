// The sizes of a mesh of devices that the options of an import, or the arguments of a program, leave open.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tandem {

struct MeshAxes {
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t expert_tensor = 0;                                          // a divisor of tensor; 0: tensor
  std::int64_t micro_batch = 1;                                            // examples
  std::int64_t of_replica() const { return tensor * pipeline * context; }  // devices
  // Those of a replica, in one stage, among which experts can be divided.
  std::int64_t with_experts() const { return expert_tensor == 0 ? context : context * tensor / expert_tensor; }
};

// The number of devices, and how a batch is divided among them.
struct MeshSizes {
  int workers = 1, devices = 1;
  std::int64_t data = 1, batch = 1, micro_batches = 1;
};

// What of a mesh does not fit the others.
enum class MeshPart : std::uint8_t { tensor, pipeline, context, experts, batch };
// Throws an error that names what gave this part.
using RefuseMesh = std::function<void(MeshPart part, const std::string& message)>;

// `batch`: of all replicas; empty: as many micro-batches for each as the pipeline has stages.
MeshSizes mesh_sizes(const MeshAxes& axes, int workers, int devices, std::optional<std::int64_t> batch,
                     const RefuseMesh& refuse);

// Returns the fewest machines of so many devices that hold a replica, and so many of them that experts are divided as
// `axes` say. Where no number of machines does, mesh_sizes() refuses what is returned.
int least_workers(const MeshAxes& axes, int devices);

}  // namespace tandem
