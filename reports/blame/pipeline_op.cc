#include "reports/blame/pipeline_op.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

constexpr std::array<PipelineOpFacts, kPipelineOpKinds> kOpKinds = {{
    {"backward-compute", "backward-compute", false},
    {"backward-recv", "backward-pp-comm", true},
    {"backward-send", "backward-pp-comm", true},
    {"embedding-grads-all-reduce", "embedding-grads-all-reduce", true},
    {"forward-compute", "forward-compute", false},
    {"forward-recv", "forward-pp-comm", true},
    {"forward-send", "forward-pp-comm", true},
    {"gc", "gc", false},
    {"grads-reduce-scatter", "grads-reduce-scatter", true},
    {"layernorm-grads-all-reduce", "layernorm-grads-all-reduce", true},
    {"optimizer", "optimizer", false},
    {"optimizer-clip-main-grad", "optimizer-clip-main-grad", true},
    {"params-all-gather", "params-all-gather", true},
    {"separate-grads-all-reduce", "separate-grads-all-reduce", true},
}};

}  // namespace

const PipelineOpFacts& facts_of(PipelineOpKind kind) {
  return kOpKinds[static_cast<std::size_t>(kind)];
}

std::optional<PipelineOpKind> pipeline_op_kind(std::string_view name) {
  const auto* const known =
      std::find_if(kOpKinds.begin(), kOpKinds.end(), [&](const PipelineOpFacts& one) { return one.name == name; });
  if (known == kOpKinds.end()) return std::nullopt;
  return static_cast<PipelineOpKind>(known - kOpKinds.begin());
}

}  // namespace tandem
