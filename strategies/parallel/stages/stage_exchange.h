// The exchanges between the devices of a stage: sums or rows among the tensor-parallel devices, keys and values among
// those of a sequence, tokens among those that divide the experts.
//
// Threads: the task of the stage's device. The devices of a group make the same calls in the same order.
#pragma once

#include "strategies/parallel/layout/mesh_layout.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

// Issues an exchange to a stream. `tensor`: the devices that divide the layer. `divides_rows`: sequence parallelism.
void issue(Exchange exchange, const MeshGroups& groups, GroupCollectives* tensor, bool divides_rows,
           const Exchanged& tensors, Stream& stream);

}  // namespace tandem
