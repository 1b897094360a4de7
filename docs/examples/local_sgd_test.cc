#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

const StrategyTraits kLocalSgd{.name = "local_sgd", .trains_in_step = false};

INSTANTIATE_TEST_SUITE_P(LocalSgd, StrategyConformance, testing::ValuesIn(in_every_world(kLocalSgd)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(LocalSgd, StrategyAtScale, testing::Values(kLocalSgd), StrategyAtScale::name);

}  // namespace tandem
