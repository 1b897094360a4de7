// Our own strategies, through the kit that strategies of others are tested with.
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {
namespace {

const StrategyTraits kMirrored{.name = "mirrored"};
const StrategyTraits kOneDevice{.name = "one_device", .max_replicas = 1};
const StrategyTraits kMultiWorker{.name = "multi_worker_mirrored", .spans_workers = true};
const StrategyTraits kCentral{.name = "central_storage", .replicates_variables = false};
const StrategyTraits kServer{.name = "parameter_server", .replicates_variables = false, .uses_servers = true};

INSTANTIATE_TEST_SUITE_P(Mirrored, StrategyConformance, testing::ValuesIn(in_every_world(kMirrored)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(OneDevice, StrategyConformance, testing::ValuesIn(in_every_world(kOneDevice)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(MultiWorker, StrategyConformance, testing::ValuesIn(in_every_world(kMultiWorker)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Central, StrategyConformance, testing::ValuesIn(in_every_world(kCentral)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Server, StrategyConformance, testing::ValuesIn(in_every_world(kServer)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(All, StrategyAtScale, testing::Values(kMirrored, kOneDevice, kMultiWorker, kCentral, kServer),
                         StrategyAtScale::name);

}  // namespace
}  // namespace tandem
