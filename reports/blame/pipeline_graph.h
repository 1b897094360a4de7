// The graph of one replica of a pipeline: its ops in one step, and who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "reports/blame/pipeline_op.h"

namespace tandem {

struct PipelineGraph {
  std::vector<PipelineOp> ops{};
  std::vector<std::vector<int>> after{};
  std::vector<std::vector<int>> pairs{};  // of a send and a receive, or one of them without a peer
};

// `ops`: those of one replica in one step, all stages from 0 to `stages` - 1. Throws InputError.
PipelineGraph pipeline_graph(std::vector<PipelineOp> ops, int stages, const std::string& file);

}  // namespace tandem
