#include "scenarios/workloads/scratch_model.h"

#include <algorithm>
#include <cmath>

#include "scenarios/calibration/random_values.h"
#include "scenarios/workloads/activations.h"
#include "scenarios/workloads/scratch_stage.h"

namespace tandem {
namespace {

Tensor filled(Device& device, std::int64_t count, DType dtype) {
  Tensor tensor = device.allocate(dtype, {count});
  device.compute_stream().launch(op::fill(tensor, 0));
  return tensor;
}

// What moves more memory than the operands have is launched piece by piece: a large table beside few examples must not
// become as many ops as it has elements.
std::int64_t fewest_elements(double moved_bytes, DType storage) {
  constexpr double kMostPieces = 64;
  return static_cast<std::int64_t>(std::ceil(moved_bytes / 2 / static_cast<double>(size_of(storage)) / kMostPieces));
}

// Returns memory that suffices for each of the stages.
std::shared_ptr<const ScratchMemory> memory_for(std::span<const std::unique_ptr<ScratchStage>> stages, DType storage,
                                                Device& device, bool keeps_values, bool keeps_scores) {
  ScratchSizes sizes;
  std::int64_t exchanged = 1, rows = 1;
  for (const auto& stage : stages) {
    const ScratchSizes mine = scratch_sizes(stage->layers(), stage->part().examples, keeps_scores);
    const std::int64_t fewest = fewest_elements(stage->most_moved_bytes(), storage);
    sizes.left = std::max({sizes.left, mine.left, fewest});
    sizes.right = std::max(sizes.right, mine.right);
    sizes.result = std::max({sizes.result, mine.result, fewest});
    exchanged = std::max(exchanged, stage->exchanged_elements());
    rows = std::max(rows, stage->loss_rows());
  }
  const LayerDivision& division = stages.front()->part().division;
  const bool divides_rows = division.divides_rows || division.context > 1 || division.expert > 1;
  ScratchMemory memory{.operands = {.left = filled(device, sizes.left, storage),
                                    .right = filled(device, sizes.right, storage),
                                    .result = filled(device, sizes.result, storage),
                                    .keeps_left = keeps_values}};
  if (division.tensor == 1 && !divides_rows) return std::make_shared<const ScratchMemory>(std::move(memory));
  memory.whole = filled(device, exchanged, storage);
  if (divides_rows) memory.rows = filled(device, exchanged, storage);
  memory.row_sums = filled(device, rows, DType::f32);
  return std::make_shared<const ScratchMemory>(std::move(memory));
}

}  // namespace

std::vector<std::unique_ptr<StageModel>> ScratchModel::make_stages(Device& device, Device& host,
                                                                   std::span<const StagePart> parts) {
  std::vector<std::unique_ptr<ScratchStage>> stages;
  for (const StagePart& part : parts) stages.push_back(std::make_unique<ScratchStage>(settings_, part, device));
  const bool keeps_values = is_measured_ && device.id().type == DeviceType::gpu;
  const std::shared_ptr<const ScratchMemory> memory =
      memory_for(stages, settings_.storage(), device, keeps_values, settings_.stack.keeps_scores());
  if (keeps_values) {
    for (const Tensor& operand : {memory->operands.left, memory->operands.right}) fill_randomly(operand, host);
  }
  for (const auto& stage : stages) stage->use(memory);
  return {std::make_move_iterator(stages.begin()), std::make_move_iterator(stages.end())};
}

std::vector<std::int64_t> ScratchModel::kept_bytes(std::span<const Layer> layers, int row_parts, int expert_row_parts,
                                                   int key_parts) const {
  ActivationSettings settings = activation_settings(settings_, 1);
  settings.row_parts = row_parts;
  settings.expert_row_parts = expert_row_parts;
  settings.key_parts = key_parts;
  settings.offloaded = 0;
  std::vector<std::int64_t> kept;
  for (const PassMemory::Moment& moment : pass_memory(layers, settings).forward) kept.push_back(moment.kept);
  return kept;
}

Batch ScratchModel::host_batch(const BatchPart& part, Device& host) {
  if (!part.has_inputs) return {};
  const std::tuple place(part.first, part.examples, part.context_part);
  if (const auto known = batches_.find(place); known != batches_.end()) return known->second;
  const std::int64_t elements = (settings_.model.input_elements + part.context_parts - 1) / part.context_parts;
  Batch batch{.inputs = filled(host, part.examples * elements, settings_.storage())};
  host.compute_stream().synchronize();
  return batches_.emplace(place, batch).first->second;
}

}  // namespace tandem
