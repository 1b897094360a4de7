// Jobs of data and pipeline parallelism from their recorded ops: who waits for whom is not in the record, and follows
// from the kinds of the ops and their order.
#pragma once

#include <string>
#include <vector>

#include "reports/blame/pipeline_op.h"
#include "reports/blame/recorded_job.h"

namespace tandem {

// The sizes of the job where they are known; 0: unknown.
struct PipelineSizes {
  std::string name{};
  int replicas = 0, stages = 0, parts = 0, ranks = 0;
  int sequences = 1;  // parts into which sequences are divided; these may be recorded as DP ranks of their own
};

// Finds out who waits for whom, and returns the job. `file` has the ops, for messages. Steps in which a worker has no
// op are left out; an op that some steps or replicas lack takes there as long as its kind ideally does. Both are noted.
//
//   - computations of a worker run in the order of their starts, and so do ops of the same kind of exchange;
//   - the k-th receive comes before the k-th computation of its direction, and after the one before it; the k-th
//     computation comes before the k-th send;
//   - the k-th send to a stage and the k-th receive there are a pair. Exchanges beyond the ends of the model, which
//     profilers record in interleaved schedules, have no peer, and ideally take as long as the others;
//   - parameters are gathered before the first forward pass of their part; gradients are scattered after the last
//     backward pass of their part where that is overlapped (there are separate-grads-all-reduce), else after all;
//   - then follow: gradients of norms, of embeddings (the first and the last stage together), of the rest, clipping
//     (all workers together), the optimizer.
//
// Throws InputError where workers or peers are missing, ops occur twice, or counts of ops or sizes contradict each
// other.
RecordedJob pipeline_job(const std::vector<PipelineOp>& ops, const std::string& file, const PipelineSizes& sizes);

}  // namespace tandem
