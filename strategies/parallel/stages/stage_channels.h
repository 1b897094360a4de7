// What a pipeline stage exchanges with the stages before and after it.
#pragma once

#include <optional>

#include "strategies/parallel/layout/mesh_layout.h"
#include "strategies/parallel/stages/pipeline_channel.h"

namespace tandem {

// The matrices of a stage: one row for each row of a micro-batch.
struct StageMatrices {
  std::int64_t rows = 0;     // of the largest micro-batch
  std::int64_t inputs = 0;   // columns of what the previous stage sends
  std::int64_t outputs = 0;  // columns of what the next stage receives
  int live = 1;              // micro-batches that are between their two passes at the same time
  DType dtype = DType::f32;
  // Whether every tensor-parallel device of the stages has the whole matrices; otherwise each has columns of its own.
  bool whole_inputs = false, whole_outputs = false;
};

struct StageChannels {
  std::optional<Receiver> input{};         // where the stage before is on another device
  std::optional<Sender> input_gradient{};  // likewise
  std::optional<Sender> output{};          // where the stage after is on another device
  std::optional<Receiver> gradient{};      // likewise
};

// Opens the channels of the device's stage number `chunk`, but for those to a stage on the same device. Keeps one more
// input than there are live micro-batches, because the next one arrives while the stage computes.
void open_channels(StageChannels& channels, const MeshMember& member, const ParallelOptions& options, int chunk,
                   const StageMatrices& matrices);

}  // namespace tandem
