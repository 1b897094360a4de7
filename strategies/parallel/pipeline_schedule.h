// Pure functions that divide a pipeline into stages and order a stage's work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct PipelineAction {
  enum class Pass : std::uint8_t { forward, backward };
  Pass pass = Pass::forward;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// One forward, one backward (PipeDream-flush: Narayanan and others, "Memory-Efficient Pipeline-Parallel DNN Training",
// arXiv:2006.09503). Stage `stage` of `stages` first runs as many forward passes as there are stages after it, then one
// forward and one backward pass in turn, then the backward passes that remain. At most min(micro_batches, stages -
// stage) micro-batches are between their two passes at any time. Needs 0 <= stage < stages and micro_batches >= 1.
std::vector<PipelineAction> one_forward_one_backward(int stage, int stages, int micro_batches);

// How many micro-batches hold activations at the same time in that schedule.
int live_micro_batches(int stage, int stages, int micro_batches);

// Divides layers into `stages` runs of at least one layer such that the most expensive run costs least. Returns the
// first layer of each stage, and the number of layers at the end. ValueError for more stages than layers.
std::vector<int> divide_into_stages(std::span<const double> layer_costs, int stages);

}  // namespace tandem
