// Divides a pipeline into stages and orders a stage's work. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct PipelineAction {
  // weights: the gradients of weights, where `backward` passes leave them out.
  enum class Pass : std::uint8_t { forward, backward, weights };
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int chunk = 0;  // which of the device's stages: 0 is the first one
  bool operator==(const PipelineAction&) const = default;
};

// One forward, one backward (PipeDream-flush: Narayanan and others, "Memory-Efficient Pipeline-Parallel DNN Training",
// arXiv:2006.09503). Stage `stage` of `stages` first runs as many forward passes as there are stages after it, then one
// forward and one backward pass in turn, then the backward passes that remain. At most min(micro_batches, stages -
// stage) micro-batches are between their two passes at any time. Needs 0 <= stage < stages and micro_batches >= 1.
std::vector<PipelineAction> one_forward_one_backward(int stage, int stages, int micro_batches);

// The same for devices with several stages each (Narayanan and others, arXiv:2104.04473, section 2.2): of the
// `devices` x `chunks` stages, device d has d, d + devices, and so on. Micro-batches go through in rounds of `devices`,
// each round through all of a device's stages before the next one. Their number must be a multiple of `devices` unless
// there is one chunk, which gives one_forward_one_backward().
std::vector<PipelineAction> interleaved_one_forward_one_backward(int device, int devices, int chunks,
                                                                 int micro_batches);

// The same, where gradients of weights are passes of their own, which fill the time that stages would wait (ZB-H1: Qi
// and others, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241). Stage s computes those of a micro-batch once `s`
// more have gone backward. As many micro-batches are under way as in the first stage of one_forward_one_backward().
std::vector<PipelineAction> zero_bubble(int stage, int stages, int micro_batches);

// The order of the passes of a pipeline.
enum class PipelineOrder : std::uint8_t { one_forward_one_backward, zero_bubble };

// The largest number of micro-batches of a chunk that are between their first and their last pass at the same time.
int live_micro_batches(std::span<const PipelineAction> actions, int chunk = 0);

// Divides layers into `stages` runs of at least one layer such that the most expensive run costs least. Returns the
// first layer of each stage, and the number of layers at the end. ValueError for more stages than layers.
std::vector<int> divide_into_stages(std::span<const double> layer_costs, int stages);

}  // namespace tandem
