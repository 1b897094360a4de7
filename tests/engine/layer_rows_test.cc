// The kernels of layers that select, divide or share out rows and elements.
#include <gmock/gmock.h>

#include <limits>

#include "engine/base/philox.h"
#include "tests/engine/layer_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;

template <typename T>
class RowKernels : public testing::Test {};
TYPED_TEST_SUITE(RowKernels, FloatingTypes);

TYPED_TEST(RowKernels, GatherTakesRowsAndZerosForOthers) {
  using T = TypeParam;
  const Tensor table = host_tensor<T>({3, 2}, {1, 2, 3, 4, 5, 6}), indices = whole({12, 10, 9, 13, 10, -1});
  const Tensor to = varied(kDTypeOf<T>, {6, 2}, 1);
  execute(op::gather_rows(to, table, indices, 10).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(5, 6, 1, 2, 0, 0, 0, 0, 1, 2, 0, 0));
  execute(op::gather_rows(to, table, indices, 10, true).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(10, 12, 2, 4, 0, 0, 0, 0, 2, 4, 0, 0));
}

TYPED_TEST(RowKernels, AddPassesOverRowsThatTheTableLacks) {
  using T = TypeParam;
  const Tensor table = host_tensor<T>({2, 2}, {1, 2, 3, 4});
  const Tensor rows = host_tensor<T>({5, 2}, {10, 20, 1, 1, 5, 5, 7, 7, 30, 40});
  execute(op::add_rows(table, rows, whole({8, 7, 6, 9, 8}), 7).kernel);
  EXPECT_THAT(values_of<T>(table), ElementsAre(2, 3, 43, 64));
}

// 256 ones more than 256: a sum that were rounded at every addition would stay 256 in bf16, and 2048 in f16.
TYPED_TEST(RowKernels, AddRoundsOnce) {
  using T = TypeParam;
  const float start = std::is_same_v<T, Float16> ? 2048 : 256;
  const Tensor table = host_tensor<T>({1, 1}, {start}), rows = host_tensor(kDTypeOf<T>, {256, 1});
  execute(op::fill(rows, 1).kernel);
  execute(op::add_rows(table, rows, whole(std::vector<std::int32_t>(256, 0)), 0).kernel);
  EXPECT_EQ(static_cast<float>(table.values<T>()[0]), start + 256);
}

TEST(CopyStrided, PermutesRepeatsAndSlices) {
  const Tensor from = host_tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto copied = [&](std::int64_t elements, const op::StridedCopy& copy) {
    const Tensor to = host_tensor(DType::f32, {elements});
    execute(op::fill(to, 0).kernel);
    execute(op::copy_strided(to, from, copy).kernel);
    return values_of<float>(to);
  };
  EXPECT_THAT(copied(6, {.sizes = {1, 1, 3, 2}, .to_strides = {0, 0, 2, 1}, .from_strides = {0, 0, 1, 3}}),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(copied(8, {.sizes = {2, 2, 1, 2}, .to_strides = {4, 2, 0, 1}, .from_strides = {3, 0, 0, 1}}),
              ElementsAre(1, 2, 1, 2, 4, 5, 4, 5));
  EXPECT_THAT(copied(6, {.sizes = {1, 1, 2, 2},
                         .to_first = 1,
                         .from_first = 1,
                         .to_strides = {0, 0, 3, 1},
                         .from_strides = {0, 0, 3, 1}}),
              ElementsAre(0, 2, 3, 0, 5, 6));
  EXPECT_THAT(
      copied(3, {.sizes = {1, 1, 1, 3}, .to_first = 2, .to_strides = {0, 0, 0, -1}, .from_strides = {0, 0, 0, 2}}),
      ElementsAre(5, 3, 1));
  EXPECT_THAT(copied(2, {.sizes = {1, 0, 2, 2}}), ElementsAre(0, 0));
}

TEST(CopyStrided, CopiesElementsOfEverySize) {
  for (const DType dtype : {DType::u8, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f64}) {
    const Tensor from = host_tensor(dtype, {4}), to = host_tensor(dtype, {4});
    set_values(from, {1, 2, 3, 4});
    execute(
        op::copy_strided(to, from, {.sizes = {1, 1, 2, 2}, .to_strides = {0, 0, 2, 1}, .from_strides = {0, 0, 1, 2}})
            .kernel);
    EXPECT_THAT(doubles_of(to), ElementsAre(1, 3, 2, 4)) << name_of(dtype);
  }
}

// Each part computes its own maxima, sums and targets; what collectives would do between is done here.
struct Parts {
  std::vector<Tensor> logits, maxima, sums, targets;
  std::vector<std::int64_t> firsts;
};

template <typename T>
Parts divided(const Tensor& logits, int count) {
  const std::int64_t rows = logits.shape()[0], columns = logits.shape()[1];
  Parts parts;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t first = columns * part / count, length = columns * (part + 1) / count - first;
    parts.firsts.push_back(first);
    parts.logits.push_back(host_tensor(kDTypeOf<T>, {rows, length}));
    execute(op::take_along(parts.logits.back(), logits, 1, first).kernel);
    for (std::vector<Tensor>* each : {&parts.maxima, &parts.sums, &parts.targets}) {
      each->push_back(host_tensor(kDTypeOf<T>, {rows}));
    }
  }
  return parts;
}

template <typename T>
void reduce(const std::vector<Tensor>& parts, kernel::Binary operation) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    execute(op::elementwise(operation, parts[0], parts[0], parts[i]).kernel);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) execute(op::scale_add(parts[i], parts[0], 1, 0).kernel);
}

TYPED_TEST(RowKernels, DividedCrossEntropyIsThatOfTheWhole) {
  using T = TypeParam;
  constexpr DType kType = kDTypeOf<T>;
  const Tensor logits = varied(kType, {6, 20}, 3), labels = whole({0, 5, 19, 10, 6, 13});
  const Tensor loss = host_tensor(kType, {1}), gradient = host_tensor(kType, {6, 20});
  execute(op::softmax_cross_entropy({.loss = loss,
                                     .gradient = gradient,
                                     .correct = {},
                                     .logits = logits,
                                     .labels = labels,
                                     .loss_scale = 0.25,
                                     .gradient_scale = 2})
              .kernel);
  for (const int count : {1, 2, 3}) {
    const Parts parts = divided<T>(logits, count);
    const auto each = [&](auto&& visit) {
      for (std::size_t i = 0; i < parts.logits.size(); ++i) visit(i);
    };
    each([&](std::size_t i) { execute(op::row_maxima(parts.maxima[i], parts.logits[i]).kernel); });
    reduce<T>(parts.maxima, kernel::Binary::maximum);
    each([&](std::size_t i) {
      execute(op::exponential_sums(parts.sums[i], parts.targets[i], parts.logits[i], parts.maxima[i], labels,
                                   parts.firsts[i])
                  .kernel);
    });
    reduce<T>(parts.sums, kernel::Binary::add);
    reduce<T>(parts.targets, kernel::Binary::add);
    each([&](std::size_t i) {
      const Tensor own_loss = host_tensor(kType, {1}), whole_part = host_tensor(kType, parts.logits[i].shape());
      execute(op::divided_cross_entropy({.loss = own_loss,
                                         .gradient = parts.logits[i],  // in place
                                         .logits = parts.logits[i],
                                         .maxima = parts.maxima[i],
                                         .sums = parts.sums[i],
                                         .targets = parts.targets[i],
                                         .labels = labels,
                                         .first = parts.firsts[i],
                                         .loss_scale = 0.25,
                                         .gradient_scale = 2})
                  .kernel);
      execute(op::take_along(whole_part, gradient, 1, parts.firsts[i]).kernel);
      // Sums of halves are rounded between the kernels.
      EXPECT_NEAR(doubles_of(own_loss)[0], doubles_of(loss)[0], 8 * tolerance_of<T>()) << count << " parts";
      const std::vector<double> actual = doubles_of(parts.logits[i]), expected = doubles_of(whole_part);
      for (std::size_t at = 0; at < expected.size(); ++at) {
        EXPECT_NEAR(actual[at], expected[at], 2 * tolerance_of<T>()) << count << " parts, element " << at;
      }
    });
  }
}

TEST(RowMaxima, PassOverNanWhichTheSumsContain) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor logits = host_tensor<float>({2, 2}, {nan, 3, -1, -2}), maxima = host_tensor(DType::f32, {2});
  const Tensor sums = host_tensor(DType::f32, {2}), targets = host_tensor(DType::f32, {2});
  execute(op::row_maxima(maxima, logits).kernel);
  EXPECT_THAT(values_of<float>(maxima), ElementsAre(3, -1));
  execute(op::exponential_sums(sums, targets, logits, maxima, whole({1, 7}), 0).kernel);
  EXPECT_TRUE(std::isnan(sums.values<float>()[0]));
  EXPECT_THAT(values_of<float>(targets), ElementsAre(0, 0));
}

TYPED_TEST(RowKernels, LargestOfRowsAreTheFirstOfEqualOnes) {
  using T = TypeParam;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor a = host_tensor<T>({3, 4}, {1, 3, 3, 3, -1, -2, -3, -4, infinity, 1, nan, nan});
  const Tensor to = host_tensor(kDTypeOf<T>, {3, 4});
  execute(op::largest_of_rows(to, a, 2).kernel);
  const std::vector<double> values = doubles_of(to);
  EXPECT_THAT(std::vector<double>(values.begin(), values.begin() + 10), ElementsAre(0, 3, 3, 0, -1, -2, 0, 0, 0, 0));
  EXPECT_THAT(std::vector<double>(values.begin() + 10, values.end()), Each(testing::IsNan()));
  execute(op::largest_of_rows(to, a, 0).kernel);
  EXPECT_THAT(doubles_of(to), Each(0));
}

TYPED_TEST(RowKernels, ExpertsGetTheirRowsAndGiveThemBack) {
  using T = TypeParam;
  const Tensor a = host_tensor<T>({2, 2}, {1, 2, 3, 4}), weights = host_tensor<T>({2, 3}, {0.5, 0, 2, 0, -1, 0});
  const Tensor dispatched = varied(kDTypeOf<T>, {3, 2, 2}, 1), combined = varied(kDTypeOf<T>, {2, 2}, 2);
  execute(op::dispatch_rows(dispatched, a, weights, false).kernel);
  EXPECT_THAT(values_of<T>(dispatched), ElementsAre(1, 2, 0, 0, 0, 0, 3, 4, 1, 2, 0, 0));
  // Weights are those of the rows: (0.5 + 2) * [1, 2] and -1 * [3, 4].
  execute(op::combine_rows(combined, dispatched, weights, true).kernel);
  EXPECT_THAT(values_of<T>(combined), ElementsAre(2.5, 5, -3, -4));
  execute(op::combine_rows(combined, dispatched, weights, false).kernel);
  EXPECT_THAT(values_of<T>(combined), ElementsAre(2, 4, 3, 4));
  const Tensor of_weights = varied(kDTypeOf<T>, {2, 3}, 3), gradient = host_tensor<T>({2, 2}, {1, -1, 2, 5});
  execute(op::expert_weight_gradients(of_weights, dispatched, gradient, weights).kernel);
  EXPECT_THAT(values_of<T>(of_weights), ElementsAre(-1, 0, -1, 0, 26, 0));
  execute(op::dispatch_rows(dispatched, a, weights, true).kernel);
  EXPECT_THAT(values_of<T>(dispatched), ElementsAre(0.5, 1, 0, 0, 0, 0, -3, -4, 2, 4, 0, 0));
}

// What an expert made of a row that did not go there is not looked at.
TEST(CombineRows, SkipsWhatHasNoWeight) {
  const Tensor a = host_tensor<float>({2, 1, 1}, {std::numeric_limits<float>::quiet_NaN(), 3});
  const Tensor to = host_tensor(DType::f32, {1, 1}), weights = host_tensor<float>({1, 2}, {0, 2});
  execute(op::combine_rows(to, a, weights, true).kernel);
  EXPECT_THAT(values_of<float>(to), ElementsAre(6));
}

std::vector<bool> dropped_of(const Tensor& tensor) {
  std::vector<bool> dropped;
  for (const double value : doubles_of(tensor)) dropped.push_back(value == 0);
  return dropped;
}

// Ones, dropped at a rate of 0.5.
std::vector<bool> dropped(std::int64_t count, std::uint64_t seed, const op::ElementNumbers& numbers) {
  const Tensor tensor = host_tensor(DType::f32, {count});
  execute(op::fill(tensor, 1).kernel);
  execute(op::dropout(tensor, tensor, 0.5, seed, numbers).kernel);
  EXPECT_THAT(values_of<float>(tensor), Each(testing::AnyOf(0, 2)));
  return dropped_of(tensor);
}

TEST(Dropout, IsDecidedByPhiloxWords) {
  constexpr std::uint64_t kSeed = 0x0123456789abcdef, kFirst = (std::uint64_t{5} << 34) + 6;
  const std::vector<bool> actual = dropped(10, kSeed, {.first = static_cast<std::int64_t>(kFirst)});
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t counter = (kFirst + i) / 4;
    const PhiloxWords words =
        philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
               {0x89abcdef, 0x01234567});
    EXPECT_EQ(actual[i], words[(kFirst + i) % 4] < 0x80000000) << i;
  }
}

// A [4, 6, 10], whole and in parts along each axis.
TEST(Dropout, DropsTheSameElementsHoweverTheyAreDivided) {
  const std::vector<bool> all = dropped(240, 7, {.offset = 1000});
  EXPECT_NE(dropped(240, 8, {.offset = 1000}), all);
  const auto expect_part = [&](std::array<std::int64_t, 3> first, std::array<std::int64_t, 3> sizes) {
    std::vector<bool> expected;
    for (std::int64_t x = 0; x < sizes[0]; ++x) {
      for (std::int64_t y = 0; y < sizes[1]; ++y) {
        for (std::int64_t z = 0; z < sizes[2]; ++z) {
          expected.push_back(all[static_cast<std::size_t>((first[0] + x) * 60 + (first[1] + y) * 10 + first[2] + z)]);
        }
      }
    }
    const op::ElementNumbers numbers{.offset = 1000 + first[0] * 60 + first[1] * 10 + first[2],
                                     .sizes = {1, 1, sizes[1], sizes[2]},
                                     .strides = {60, 0, 10, 1}};
    EXPECT_EQ(dropped(sizes[0] * sizes[1] * sizes[2], 7, numbers), expected);
  };
  expect_part({0, 0, 0}, {4, 6, 10});
  expect_part({2, 0, 0}, {2, 6, 10});
  expect_part({0, 3, 0}, {4, 3, 10});
  expect_part({0, 0, 5}, {4, 6, 5});
  expect_part({1, 2, 3}, {2, 3, 4});
  expect_part({1, 2, 3}, {2, 1, 1});
  const std::vector<bool> rest = dropped(140, 7, {.first = 100, .offset = 1000});
  EXPECT_EQ(rest, std::vector<bool>(all.begin() + 100, all.end()));
  // The elements of a transposed tensor, [10, 24]; and its second half, which begins within a row.
  const op::ElementNumbers transposed{.offset = 1000, .sizes = {1, 1, 1, 24}, .strides = {1, 0, 0, 10}};
  const std::vector<bool> columns = dropped(240, 7, transposed);
  for (std::size_t i = 0; i < 240; ++i) EXPECT_EQ(columns[i], all[i % 24 * 10 + i / 24]) << i;
  op::ElementNumbers second = transposed;
  second.first = 130;
  EXPECT_EQ(dropped(110, 7, second), std::vector<bool>(columns.begin() + 130, columns.end()));
}

TYPED_TEST(RowKernels, DropoutKeepsItsShare) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Tensor tensor = host_tensor(kDTypeOf<TypeParam>, {20000});
    execute(op::fill(tensor, 1).kernel);
    execute(op::dropout(tensor, tensor, rate, 3, {}).kernel);
    double count = 0;
    for (const double value : doubles_of(tensor)) {
      count += value == 0 ? 1 : 0;
      ASSERT_NEAR(value, value == 0 ? 0 : 1 / (1 - rate), 10 * tolerance_of<TypeParam>());
    }
    EXPECT_NEAR(count / 20000, rate, 5 * std::sqrt(rate * (1 - rate) / 20000));
  }
}

TEST(Dropout, KeepsEverythingAtARateOfZero) {
  const Tensor a = varied(DType::f32, {1000}, 1), to = host_tensor(DType::f32, {1000});
  execute(op::dropout(to, a, 0, 3, {}).kernel);
  EXPECT_EQ(doubles_of(to), doubles_of(a));
}

// An element whose word is w is dropped at every rate above w / 2^32, and kept at that rate.
TEST(Dropout, WordsAtTheBound) {
  const double word = philox({}, {9, 0})[0];
  const auto is_dropped = [](double rate) {
    const Tensor one = host_tensor<double>({1}, {1});
    execute(op::dropout(one, one, rate, 9, {}).kernel);
    return one.values<double>()[0] == 0;
  };
  EXPECT_FALSE(is_dropped(word * 0x1p-32));
  EXPECT_TRUE(is_dropped((word + 0x1p-10) * 0x1p-32));
  EXPECT_TRUE(is_dropped((word + 1) * 0x1p-32));
  EXPECT_EQ(word_bound(0), 0);
  EXPECT_EQ(word_bound(0x1p-33), 1);
  EXPECT_EQ(word_bound(0x1p-32), 1);
  EXPECT_EQ(word_bound(std::nextafter(1.0, 0.0)), std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace tandem
