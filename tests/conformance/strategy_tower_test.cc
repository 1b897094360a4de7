// TensorFlow 1's strategies in every world: what they refuse, and the clusters and operations they are given.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/tower.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> device_names(Worker& worker) {
  std::vector<std::string> names;
  for (const Device* device : worker.devices()) names.push_back(device->id().text());
  return names;
}

// Towers that mirror their variables, and towers that keep them in one place.
std::vector<tower::DistributionStrategy> towers_of(Worker& worker) {
  return {tower::MirroredStrategy(worker, {.devices = device_names(worker)}),
          tower::ParameterServerStrategy(worker, std::nullopt)};
}

void in_towers(const tower::DistributionStrategy& towers, const std::function<void()>& function) {
  towers.call_for_each_tower([&](const Value::Parts&) {
    function();
    return Value();
  });
}

// As in TensorFlow, the towers of a stored variable get one result of one update, which a SUM would count twice; those
// of a mirrored variable get one each, which they may add.
TEST_P(Strategies, TowersPassTheResultOfOneTowersUpdateToNoOtherVariable) {
  run(2, [](Worker& worker) {
    for (const tower::DistributionStrategy& towers : towers_of(worker)) {
      SCOPED_TRACE(towers.strategy().name());
      const Scope scope = towers.scope();
      const auto variable = [&](const char* name, VariableAggregation aggregation) {
        return towers.create_variable({.name = name, .shape = {1}, .aggregation = aggregation});
      };
      const auto v = variable("v", VariableAggregation::sum), w = variable("w", VariableAggregation::sum);
      const auto mean = variable("mean", VariableAggregation::mean);
      const auto mine = [] { return filled(tower::get_tower_context()->device(), {1}, 1); };
      const std::string refused = message_of<ValueError>([&] {
        Value of_first;
        in_towers(towers, [&] {
          const Tensor result = v->assign_add(mine());
          if (tower::get_tower_context()->tower_id() == 0) of_first = result;
          w->assign_add(of_first);
        });
      });
      EXPECT_THAT(refused, HasSubstr("SUM over 2 replicas of the non-DistributedValues tensor"));
      EXPECT_EQ(floats_of(worker, w->read())[0], 0);
      in_towers(towers, [&] { mean->assign_add(v->assign_add(mine())); });
      EXPECT_EQ(floats_of(worker, mean->read())[0], 4);

      const bool is_stored = v->components().size() == 1;
      const std::string own =
          message_of<ValueError>([&] { in_towers(towers, [&] { w->assign_add(v->assign_add(mine())); }); });
      EXPECT_THAT(own, HasSubstr(is_stored ? "non-DistributedValues" : "no error"));
      EXPECT_EQ(floats_of(worker, w->read())[0], is_stored ? 0 : 12);
    }
  });
}

}  // namespace
}  // namespace tandem
