#include "scenarios/plan/pass_fields.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

constexpr std::array<std::string_view, 3> kNeverDecide = {"devices.workers", "topology.cluster.workers",
                                                          "workload.batch"};
constexpr std::array<std::string_view, 11> kDecideNoStage = {"strategy.data",
                                                             "strategy.pipeline",
                                                             "strategy.virtual_stages",
                                                             "strategy.micro_batches",
                                                             "strategy.stage_blocks",
                                                             "strategy.replicate",
                                                             "strategy.overlap_gather",
                                                             "strategy.distributed_optimizer",
                                                             "strategy.overlap_experts",
                                                             "strategy.axis_order",
                                                             "workload.bucket_bytes"};

}  // namespace

bool decides_passes(std::string_view field, bool has_stages) {
  const auto is_among = [field](const auto& fields) { return std::ranges::find(fields, field) != fields.end(); };
  if (field.starts_with("evaluation.")) return false;  // a pass of training takes what it takes
  return !is_among(kNeverDecide) && !(has_stages && is_among(kDecideNoStage));
}

}  // namespace tandem
