#include "tests/conformance/kit/division/division_conformance.h"

namespace tandem {

const DivisionTraits kGpipe{.name = "gpipe"};

INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionConformance, testing::ValuesIn(in_every_mesh(kGpipe)),
                         DivisionConformance::name);
INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionPredictions, testing::ValuesIn(in_predicted_meshes(kGpipe)),
                         DivisionPredictions::name);
INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionOfModels, testing::Values(kGpipe), DivisionOfModels::name);

}  // namespace tandem
