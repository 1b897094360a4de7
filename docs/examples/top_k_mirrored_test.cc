#include <numeric>

#include "strategies/cross_device/host_values.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

const StrategyTraits kTopKMirrored{.name = "top_k_mirrored"};

INSTANTIATE_TEST_SUITE_P(TopKMirrored, StrategyConformance, testing::ValuesIn(in_every_world(kTopKMirrored)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(TopKMirrored, StrategyAtScale, testing::Values(kTopKMirrored), StrategyAtScale::name);

class TopKMirroredInWorlds : public InEveryWorld {
 protected:
  static constexpr std::int64_t kElements = 4096, kSent = 41;  // the nearest to a hundredth

  void SetUp() override {
    InEveryWorld::SetUp();
    if (IsSkipped()) return;
    engine_ = open_world(GetParam(), 1, 2);
    if (!engine_->capabilities().selection_kernels) GTEST_SKIP() << "its devices have no kernel of top_k";
  }

  std::unique_ptr<Engine> engine_;
};

// The elements from `first` to `last` are twice their index, all others zero.
void expect_sent(const std::vector<double>& sum, std::size_t first, std::size_t last) {
  ASSERT_EQ(sum.size(), 4096u);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(sum[i], i >= first && i <= last ? 2 * static_cast<double>(i) : 0) << i;
  }
}

// Two replicas have the gradient 0, 1, 2, ... in the first step, and none in the second.
TEST_P(TopKMirroredInWorlds, SendsTheLargestElementsFirstAndTheOthersLater) {
  engine_->run([](Worker& worker) {
    const auto strategy = make_strategy("top_k_mirrored", worker);
    const auto variable = strategy->create_variable({.name = "w", .shape = {64, 64}});
    const auto sum_of = [&](const std::vector<double>& gradient) {
      Value::Parts parts;
      for (Device* device : worker.devices()) parts.emplace_back(constant(*device, gradient, Shape{64, 64}));
      return strategy->extended().reduce_to(ReduceOp::sum, Value::per_replica(parts), variable);
    };
    std::vector<double> rising(kElements);
    std::iota(rising.begin(), rising.end(), 0);
    const Value first = sum_of(rising), second = sum_of(std::vector<double>(kElements));
    for (std::size_t replica = 0; replica < 2; ++replica) {
      expect_sent(host_values(worker, first.parts()[replica].tensor()), kElements - kSent, kElements - 1);
      expect_sent(host_values(worker, second.parts()[replica].tensor()), kElements - 2 * kSent, kElements - kSent - 1);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, TopKMirroredInWorlds, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace tandem
