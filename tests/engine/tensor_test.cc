#include "engine/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

TEST(Shape, CountsElementsAndPrintsItself) {
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_EQ((Shape{64, 10}).element_count(), 640);
  EXPECT_EQ((Shape{3, 0, 2}).element_count(), 0);
  EXPECT_EQ((Shape{64, 10}).text(), "[64, 10]");
  EXPECT_EQ(Shape{}.text(), "[]");
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(Shape, RefusesMoreElementsThanMemoryCanHave) {
  EXPECT_THAT(([] {
                Shape{std::int64_t{1} << 40, std::int64_t{1} << 40};
              }),
              testing::ThrowsMessage<Error>("the shape [1099511627776, 1099511627776] has more than 2^59 elements"));
  EXPECT_THROW((Shape{0, std::int64_t{1} << 60}), Error) << "a zero does not hide what its neighbours overflow";
  EXPECT_EQ((Shape{std::int64_t{1} << 59}).element_count(), std::int64_t{1} << 59);
}

TEST(Shape, RefusesNegativeDimensions) {
  EXPECT_THAT(([] { Shape{2, -1}; }), testing::ThrowsMessage<UsageError>("a negative dimension in the shape [2, -1]"));
}

TEST(Tensor, SlicesAndReshapesShareItsMemory) {
  run_on_cpu(1, 1, [](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::i32, {4, 3});
    int next = 0;
    for (std::int32_t& value : tensor.values<std::int32_t>()) value = next++;
    const Tensor rows = tensor.slice(1, 2);
    EXPECT_EQ(rows.shape(), (Shape{2, 3}));
    EXPECT_THAT(rows.values<std::int32_t>(), testing::ElementsAre(3, 4, 5, 6, 7, 8));
    const Tensor flat = tensor.flat_slice(10, 2);
    EXPECT_EQ(flat.shape(), (Shape{2}));
    EXPECT_THAT(flat.values<std::int32_t>(), testing::ElementsAre(10, 11));
    EXPECT_THAT(rows.flat_slice(1, 3).values<std::int32_t>(), testing::ElementsAre(4, 5, 6));
    EXPECT_EQ(tensor.flat_slice(12, 0).element_count(), 0);
    const Tensor turned = rows.reshape({3, 2});
    EXPECT_EQ(rows.shape(), (Shape{2, 3})) << "a reshape leaves the tensor as it is";
    EXPECT_EQ(tensor.flat_slice(2, 4).reshape({2, 2}).values<std::int32_t>()[3], 5);
    turned.values<std::int32_t>()[0] = 42;
    EXPECT_EQ(tensor.values<std::int32_t>()[3], 42);
    EXPECT_EQ(tensor.slice(4, 0).element_count(), 0);
    EXPECT_EQ(tensor.size_bytes(), 48U);
  });
}

TEST(Tensor, RefusesPartsThatItLacks) {
  run_on_cpu(1, 1, [](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {2, 3});
    const auto beyond = testing::ThrowsMessage<UsageError>("a slice beyond the shape [6]");
    EXPECT_THAT([&] { tensor.flat_slice(4, 3); }, beyond);
    EXPECT_THAT([&] { tensor.flat_slice(-1, 1); }, beyond);
    EXPECT_THAT([&] { tensor.flat_slice(0, -1); }, beyond);
    EXPECT_THAT([&] { tensor.reshape({4}); },
                testing::ThrowsMessage<UsageError>("a reshape of [2, 3] to [4] changes the number of elements"));
  });
}

TEST(Tensor, IsSameAsOnlyItself) {
  run_on_cpu(1, 1, [](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {2, 2});
    const Tensor other = worker.cpu().allocate(DType::f32, {2, 2});
    const Tensor handle = tensor;  // NOLINT(performance-unnecessary-copy-initialization): the copy is what is tested
    EXPECT_TRUE(tensor.is_same(handle));
    EXPECT_TRUE(tensor.is_same(tensor.slice(0, 2)));
    EXPECT_FALSE(tensor.is_same(other));
    EXPECT_FALSE(tensor.is_same(tensor.reshape({4})));
    EXPECT_FALSE(tensor.slice(0, 1).is_same(tensor.slice(1, 1)));
    EXPECT_TRUE(Tensor().is_same(Tensor()));
  });
}

TEST(Tensor, WithoutMemoryIsEmpty) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.has_values());
  EXPECT_EQ(none.data(), nullptr);
}

}  // namespace
}  // namespace tandem
