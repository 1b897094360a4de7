// Divides a pipeline into stages and orders a stage's work. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct PipelineAction {
  // inputs: the part of a backward pass that other stages wait for; the gradients of weights follow later, as
  // `weights`.
  enum class Pass : std::uint8_t { forward, backward, inputs, weights };
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int chunk = 0;           // which of the device's stages: 0 is the first one
  bool with_next = false;  // takes turns with the next action, whose work hides the exchanges of this one
  bool operator==(const PipelineAction&) const = default;
};

// The passes of a device with several stages in the order in which micro-batches meet them: rounds of `devices`
// micro-batches go through chunk 0, then through chunk 1, and so on; backward they take the chunks in the opposite
// order.
struct RoundsOfPasses {
  int devices = 1, chunks = 1, micro_batches = 1;

  int passes() const { return micro_batches * chunks; }  // in one direction
  PipelineAction forward(int number) const;
  PipelineAction backward(int number) const;
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

// Both of them where each forward pass takes turns with the backward pass that follows it, so that the exchanges of one
// are hidden by the work of the other (Megatron-LM's --overlap-moe-expert-parallel-comm). One more forward pass
// precedes the first backward pass, because no pass can hide those of its own micro-batch. With one chunk a device is
// ahead of the next one by two passes, not by one as in 1F1B: what takes turns ends together, so that each of the two
// devices would wait for the other.
std::vector<PipelineAction> alternating_one_forward_one_backward(int device, int devices, int chunks,
                                                                 int micro_batches);

// The order of the passes of a pipeline: see the functions of these names, here and in zero_bubble_schedule.h.
enum class PipelineOrder : std::uint8_t {
  one_forward_one_backward,
  zero_bubble,
  zero_bubble_h2,
  zero_bubble_v,
  dual_pipe_v,
  dual_pipe
};

// Returns whether the gradients of weights are passes of their own.
bool has_passes_of_weights(std::span<const PipelineAction> actions);
// The largest number of micro-batches of a chunk that are between their first and their last pass at the same time.
int live_micro_batches(std::span<const PipelineAction> actions, int chunk = 0);
// The largest number of them that are between the begin of their backward pass and the end of their last one; 0 where
// no pass of the chunk leaves gradients of weights for later.
int owing_micro_batches(std::span<const PipelineAction> actions, int chunk = 0);

// Divides layers into `stages` runs of at least one layer such that the most expensive run costs least. Returns the
// first layer of each stage, and the number of layers at the end. ValueError for more stages than layers.
std::vector<int> divide_into_stages(std::span<const double> layer_costs, int stages);

}  // namespace tandem
