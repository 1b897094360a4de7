// A way to divide a model of one's own: GPipe's schedule, in which a device does the forward passes of all
// micro-batches before the first backward pass.
#include <memory>
#include <optional>
#include <vector>

#include "strategies/parallel/mesh_division.h"
#include "strategies/strategies.h"

namespace {

using namespace tandem;

class GpipeDivision final : public MeshDivision {
 public:
  std::vector<PipelineAction> schedule(int /*place*/, const ParallelOptions& options) const override {
    std::vector<PipelineAction> actions;
    for (const auto pass : {PipelineAction::Pass::forward, PipelineAction::Pass::backward}) {
      for (int i = 0; i < options.micro_batches; ++i) actions.push_back({.pass = pass, .micro_batch = i});
    }
    return actions;
  }

  std::optional<DivisionProblem> problem(const DivisionRequest& request) const override {
    if (request.options.virtual_stages > 1) return DivisionProblem{"strategy.virtual_stages", "one stage a device"};
    return MeshDivision::problem(request);
  }
};

// Scenarios give it the sizes of a mesh, as they do for `mesh`.
[[maybe_unused]] const bool is_registered = [] {
  register_strategy({.name = "gpipe",
                     .several_workers = true,
                     .division = ModelDivision{.how = std::make_shared<const GpipeDivision>(), .micro_batches = true}});
  return true;
}();

}  // namespace
