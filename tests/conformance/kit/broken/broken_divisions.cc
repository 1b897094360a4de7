// Ways to divide a model with one fault each, as broken_strategies.cc has strategies.
#include "strategies/parallel/mesh_division.h"
#include "strategies/strategies.h"
#include "tests/conformance/kit/division/division_conformance.h"

namespace tandem {
namespace {

struct ForgetsAMicroBatch : MeshDivision {
  std::vector<PipelineAction> schedule(int place, const ParallelOptions& options) const override {
    std::vector<PipelineAction> actions = MeshDivision::schedule(place, options);
    std::erase_if(actions, [&options](const PipelineAction& action) {
      return options.micro_batches > 1 && action.micro_batch == options.micro_batches / 2;
    });
    return actions;
  }
};

struct KeepsNoActivations : MeshDivision {
  std::vector<DeviceShare> shares(const DivisionRequest& request) const override {
    std::vector<DeviceShare> shares = MeshDivision::shares(request);
    for (DeviceShare& share : shares) share.stages.clear();
    return shares;
  }
};

struct RefusesEveryModel : MeshDivision {
  std::optional<DivisionProblem> problem(const DivisionRequest& /*request*/) const override {
    return DivisionProblem{"strategy", "today is a holiday"};
  }
};

template <typename Broken>
void add(const char* name) {
  register_strategy({.name = name,
                     .several_workers = true,
                     .division = ModelDivision{.how = std::make_shared<const Broken>(), .micro_batches = true}});
}

[[maybe_unused]] const bool kAreRegistered = [] {
  add<ForgetsAMicroBatch>("forgets_a_micro_batch");
  add<KeepsNoActivations>("keeps_no_activations");
  add<RefusesEveryModel>("refuses_every_model");
  return true;
}();

std::vector<DivisionUnderTest> all_meshes() {
  std::vector<DivisionUnderTest> all;
  for (const char* name : {"forgets_a_micro_batch", "keeps_no_activations"}) {
    for (DivisionUnderTest& mesh : in_every_mesh({.name = name})) all.push_back(std::move(mesh));
  }
  std::erase_if(all, [](const DivisionUnderTest& mesh) { return mesh.engine != "sim"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Broken, DivisionConformance, testing::ValuesIn(all_meshes()), DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Broken, DivisionOfModels, testing::Values(DivisionTraits{.name = "refuses_every_model"}),
                         DivisionOfModels::name);
INSTANTIATE_TEST_SUITE_P(Broken, DivisionPredictions, testing::ValuesIn(all_meshes()), DivisionPredictions::name);

}  // namespace
}  // namespace tandem
