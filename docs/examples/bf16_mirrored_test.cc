#include <gmock/gmock.h>

#include "strategies/cross_device/host_values.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

const StrategyTraits kBf16Mirrored{.name = "bf16_mirrored"};

INSTANTIATE_TEST_SUITE_P(Bf16Mirrored, StrategyConformance, testing::ValuesIn(in_every_world(kBf16Mirrored)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Bf16Mirrored, StrategyAtScale, testing::Values(kBf16Mirrored), StrategyAtScale::name);

class Bf16MirroredInWorlds : public InEveryWorld {
 protected:
  // Reduces the gradients 1.25 and 2.25 of a variable of 4096 elements. Returns the bytes of the collectives.
  double bytes_under(const char* name) const {
    const Timeline timeline = open_world(GetParam(), 1, 2)->run([name](Worker& worker) {
      const auto strategy = make_strategy(name, worker);
      const auto variable = strategy->create_variable({.name = "w", .shape = {4096}});
      Value::Parts gradients;
      for (Device* device : worker.devices()) {
        const Tensor gradient = device->allocate(DType::f32, {4096});
        device->compute_stream().launch(op::fill(gradient, 1.25 + static_cast<double>(gradients.size())));
        gradients.emplace_back(gradient);
      }
      const Value sum = strategy->extended().reduce_to(ReduceOp::sum, Value::per_replica(gradients), variable);
      for (const Value& part : sum.parts()) {
        EXPECT_EQ(part.tensor().dtype(), DType::f32);
        EXPECT_THAT(host_values(worker, part.tensor()), testing::Each(3.5)) << name;
      }
    });
    double bytes = 0;
    for (const Record& record : timeline.records) {
      if (record.kind == RecordKind::collective) bytes += record.bytes;
    }
    return bytes;
  }
};

TEST_P(Bf16MirroredInWorlds, SendsHalfTheBytes) {
  const double plain = bytes_under("mirrored"), compressed = bytes_under("bf16_mirrored");
  EXPECT_GE(plain, 2 * 4096 * 4);  // a record for each device
  EXPECT_EQ(compressed, plain / 2);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Bf16MirroredInWorlds, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace tandem
