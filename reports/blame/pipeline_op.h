// Recorded ops of jobs with data and pipeline parallelism, by kind (forward-compute, forward-send, ...), as ByteDance
// publishes them (github.com/ByteDance-Seed/StragglerAnalysis).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "topologies/base/error.h"

namespace tandem {

// In the order of their names, which decides between ops that start at the same time.
enum class PipelineOpKind : std::uint8_t {
  backward_compute,
  backward_recv,
  backward_send,
  embedding_grads_all_reduce,
  forward_compute,
  forward_recv,
  forward_send,
  gc,
  grads_reduce_scatter,
  layernorm_grads_all_reduce,
  optimizer,
  optimizer_clip_main_grad,
  params_all_gather,
  separate_grads_all_reduce
};
inline constexpr int kPipelineOpKinds = 14;

struct PipelineOpFacts {
  std::string_view name;  // "forward-send"
  std::string_view type;  // "forward-pp-comm": both ends of an exchange are one type
  bool by_median;         // AlikeOps: communication, and clipping, which waits for it
};
const PipelineOpFacts& facts_of(PipelineOpKind kind);
inline std::string_view name_of(PipelineOpKind kind) {
  return facts_of(kind).name;
}
std::optional<PipelineOpKind> pipeline_op_kind(std::string_view name);

struct PipelineOp {
  int replica = 0, stage = 0, rank = 0;
  int step = 0;
  PipelineOpKind kind = PipelineOpKind::forward_compute;
  int order = 0;  // among the ops of its kind of this worker in this step
  // The part of the model, among those of the stage; and among those of the job, where 0 has the first layers and -1 is
  // unknown. Interleaved schedules have several in a stage.
  int part = 0, part_of_job = -1;
  double start_s = 0, duration_s = 0;
  FilePlace place{};

  double end_s() const { return start_s + duration_s; }
};

}  // namespace tandem
