// Orders of passes in which gradients of weights are passes of their own, which fill the time that devices would wait:
// Qi and others, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, and DeepSeek's DualPipe, arXiv:2412.19437.
// Pure functions.
#pragma once

#include <vector>

#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

// ZB-H1: as 1F1B, with as many micro-batches under way as in its first stage. Device d computes the gradients of
// weights of a pass once `d` more have gone backward. With several chunks on each device (PyTorch's
// InterleavedZeroBubble) micro-batches go in rounds, as in interleaved_one_forward_one_backward(), with a warm-up that
// is shorter by `devices - device - 1` passes.
std::vector<PipelineAction> zero_bubble(int device, int devices, int chunks, int micro_batches);

// ZB-H2: nothing waits once the pipeline is full, if the three passes take equally long; twice as many micro-batches
// are under way. With fewer than 2 x stages - 1 micro-batches some waiting is left. Found as the paper finds orders, by
// playing the passes with equal times: a stage goes backward if it can, else forward if it may keep one more
// micro-batch, else it computes gradients of weights.
std::vector<PipelineAction> zero_bubble_h2(int stage, int stages, int micro_batches);

// ZB-V: the order of the paper's section 6 for equal times. Each device has two stages: of 2 x `devices`, device d has
// d and 2 x devices - 1 - d, so that the first and the last one meet on device 0. As much memory as 1F1B, and nothing
// waits in the middle of a step.
std::vector<PipelineAction> zero_bubble_v(int device, int devices, int micro_batches);

// DualPipeV, DeepSeek's DualPipe on the stages of zero_bubble_v() (github.com/deepseek-ai/DualPipe): in the middle of a
// step, forward passes of one stage take turns with backward passes of the other. Needs micro_batches >= 2 x devices.
std::vector<PipelineAction> dual_pipe_v(int device, int devices, int micro_batches);

// DualPipe: every stage is on two devices; half of the micro-batches go through the pipeline from each end. Of
// `devices` stages, device d has d as chunk 0, for the first half, and devices - 1 - d as chunk 1, for the second half;
// micro-batches count within their half. Needs an even number of devices and of micro-batches, and micro_batches >= 2 x
// devices.
std::vector<PipelineAction> dual_pipe(int device, int devices, int micro_batches);

}  // namespace tandem
