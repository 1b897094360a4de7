// Where operands of measured ops lie.
#include "scenarios/calibration/pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "engine/engine.h"

namespace tandem::calibration {
namespace {

class OperandPool : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, OperandPool, testing::Values(DType::u8, DType::bf16, DType::f32, DType::f64),
                         [](const auto& type) { return std::string(name_of(type.param)); });

std::uintptr_t place_of(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data());
}

void with_pool(DType dtype, std::int64_t bytes, const std::function<void(Pool& pool)>& look) {
  EngineOptions options;
  options.workers.front().device_type = DeviceType::cpu;
  open_engine("cpu", std::move(options))->run([&](Worker& worker) {
    Pool pool(worker, *worker.devices().front(), dtype, bytes);
    look(pool);
  });
}

TEST_P(OperandPool, OperandsAreApartAsTensorsAre) {
  with_pool(GetParam(), 1 << 16, [](Pool& pool) {
    const std::uintptr_t first = place_of(pool.take(1));
    for (const std::int64_t count : {1, 3, 64, 65, 1000, 1}) {
      EXPECT_EQ((place_of(pool.take(count)) - first) % 256, 0U) << count;
    }
  });
}

TEST_P(OperandPool, TwoThatFillHalfOfItDoNotOverlapWhereverTheyBegin) {
  constexpr std::int64_t kPoolBytes = 1 << 16;
  with_pool(GetParam(), kPoolBytes, [](Pool& pool) {
    const auto size = static_cast<std::int64_t>(size_of(GetParam()));
    const std::int64_t count = kPoolBytes / size / 4;
    for (int i = 0; i < 40; ++i) {
      pool.take(1 + 37 * i % 300);
      const Tensor a = pool.take(count), b = pool.take(count);
      const std::uintptr_t apart = place_of(a) < place_of(b) ? place_of(b) - place_of(a) : place_of(a) - place_of(b);
      EXPECT_GE(apart, static_cast<std::uintptr_t>(count * size)) << i;
    }
  });
}

TEST_P(OperandPool, TheWholeOfItCanBeTaken) {
  with_pool(GetParam(), 4096, [](Pool& pool) {
    const std::int64_t all = 4096 / static_cast<std::int64_t>(size_of(GetParam()));
    const Tensor once = pool.take(all), again = pool.take(all);
    EXPECT_EQ(place_of(once), place_of(again));
    EXPECT_GE(pool.aligned(1), 1);
    EXPECT_EQ(pool.aligned(pool.aligned(1)), pool.aligned(1));
  });
}

}  // namespace
}  // namespace tandem::calibration
