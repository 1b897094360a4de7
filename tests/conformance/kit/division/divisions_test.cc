// Our own ways to divide a model, through the kit that those of others are tested with.
#include "tests/conformance/kit/division/division_conformance.h"

namespace tandem {
namespace {

const DivisionTraits kMesh{.name = "mesh"}, kSharded{.name = "fully_sharded"}, kTensor{.name = "tensor_parallel"},
    kPipeline{.name = "pipeline_parallel"};

INSTANTIATE_TEST_SUITE_P(Mesh, DivisionConformance, testing::ValuesIn(in_every_mesh(kMesh)), DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Sharded, DivisionConformance, testing::ValuesIn(in_every_mesh(kSharded)),
                         DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Tensor, DivisionConformance, testing::ValuesIn(in_every_mesh(kTensor)),
                         DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Pipeline, DivisionConformance, testing::ValuesIn(in_every_mesh(kPipeline)),
                         DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Mesh, DivisionPredictions, testing::ValuesIn(in_predicted_meshes(kMesh)),
                         DivisionPredictions::name);
INSTANTIATE_TEST_SUITE_P(Sharded, DivisionPredictions, testing::ValuesIn(in_predicted_meshes(kSharded)),
                         DivisionPredictions::name);
INSTANTIATE_TEST_SUITE_P(Tensor, DivisionPredictions, testing::ValuesIn(in_predicted_meshes(kTensor)),
                         DivisionPredictions::name);
INSTANTIATE_TEST_SUITE_P(Pipeline, DivisionPredictions, testing::ValuesIn(in_predicted_meshes(kPipeline)),
                         DivisionPredictions::name);
INSTANTIATE_TEST_SUITE_P(All, DivisionOfModels, testing::Values(kMesh, kSharded, kTensor, kPipeline),
                         DivisionOfModels::name);

// Nothing that the kit trains is refused by these, so that none of its tests is skipped.
TEST(OurDivisions, RefuseNoMesh) {
  for (const DivisionTraits& traits : {kMesh, kSharded, kTensor, kPipeline}) {
    for (const DivisionUnderTest& tested : in_every_mesh(traits)) EXPECT_EQ(refusal_of(tested), "") << tested;
  }
}

}  // namespace
}  // namespace tandem
