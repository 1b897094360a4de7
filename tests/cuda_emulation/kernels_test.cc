// The engine's kernels beside the cpu engine's, on equal random operands.
#include <cstring>

#include "tests/cuda_emulation/compared_kernels.h"

namespace tandem {
namespace {

const std::vector<DType> kAll{DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};
const std::vector<DType> kFloating{DType::f64, DType::f32, DType::f16, DType::bf16};

class Kernels : public OnTypesOfGpus {};
class FloatingKernels : public Kernels {};
class WideKernels : public testing::Test {
 protected:
  void SetUp() override {
    try {
      open_gpus(1);
    } catch (const UnavailableError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, Kernels, testing::ValuesIn(kAll), name_of_type);
INSTANTIATE_TEST_SUITE_P(Types, FloatingKernels, testing::ValuesIn(kFloating), name_of_type);

TEST_P(Kernels, FillAndCopy) {
  for (const std::int64_t count : {0, 1, 33, 1000}) {
    compare("fill", {{{count}}, [](const Tensors& t) { return op::fill(t[0], 7); }}, GetParam(), true);
    compare("fill below 0", {{{count}}, [](const Tensors& t) { return op::fill(t[0], -1); }}, GetParam(), true);
    compare("copy_many",
            {{{count}, {count}, {3}, {3}},
             [](const Tensors& t) {
               return op::copy_many({t[0], t[2]}, {t[1], t[3]});
             }},
            GetParam(), true);
  }
}

// Batches of every type are made on the host.
TEST_P(Kernels, FillOfTheHostIsThatOfTheGpu) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor here = worker.cpu().allocate(GetParam(), {33}), back = worker.cpu().allocate(GetParam(), {33});
    const Tensor there = gpu.allocate(GetParam(), {33});
    for (const double value : {0.0, 2.7182818, 200.0}) {
      worker.cpu().compute_stream().launch(op::fill(here, value));
      gpu.compute_stream().launch(op::fill(there, value));
      gpu.compute_stream().copy(back, there);
      worker.cpu().synchronize();
      gpu.synchronize();
      EXPECT_EQ(std::memcmp(here.data(), back.data(), here.size_bytes()), 0) << value;
    }
  });
}

TEST_P(Kernels, MoreElementsThanThreads) {
  constexpr std::int64_t kCount = 4096 * 256 + 1000;
  compare("fill", {{{kCount}}, [](const Tensors& t) { return op::fill(t[0], 3); }}, GetParam(), true);
}

// Where 32 bits do not count so far. Only the ends are looked at.
TEST_F(WideKernels, CountBeyondTwoToThe31) {
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 37;
  const auto engine = open_gpus(1);
  if (engine->capabilities().hardware.back().memory_bytes < 8e9) GTEST_SKIP() << "too little memory for 4 GiB";
  engine->run([](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    const Tensor a = gpu.allocate(DType::u8, {kCount}), bias = gpu.allocate(DType::u8, {1});
    const Tensor here = worker.cpu().allocate(DType::u8, {64});
    stream.launch(op::fill(a, 3));
    stream.launch(op::fill(bias, 4));
    stream.launch(op::add_bias(a.reshape({kCount, 1}), bias));
    stream.launch(op::elementwise(kernel::Binary::multiply, a, a, a));
    for (const std::int64_t first : {std::int64_t{0}, kCount - 64}) {
      stream.copy(here, a.flat_slice(first, 64));
      stream.synchronize();
      EXPECT_THAT(here.values<std::uint8_t>(), testing::Each(49)) << first;
    }
  });
}

// More ranks than loads that are under way together, and than one kernel takes.
TEST_P(Kernels, AllReduceOfManyLogicalDevices) {
  for (const int ranks : {5, 8, 33}) {
    run_on_gpus(ranks, [&](Worker& worker) {
      const std::int64_t count = std::int64_t{64} * ranks;  // so that each rank's share is aligned
      std::vector<Tensor> tensors;
      double sum = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        Device& device = *worker.devices()[static_cast<std::size_t>(rank)];
        tensors.push_back(device.allocate(GetParam(), {count}));
        device.compute_stream().launch(op::fill(tensors.back(), 1 + rank % 3));
        sum += 1 + rank % 3;
      }
      worker.communicator(ids_of(worker)).all_reduce(tensors, Reduction::sum, compute_streams(worker));
      for (const Tensor& tensor : tensors) {
        Stream& stream = tensor.device().compute_stream();
        const Tensor wide = tensor.device().allocate(DType::f64, {count}),
                     here = worker.cpu().allocate(DType::f64, {count});
        stream.launch(op::cast(wide, tensor));
        stream.copy(here, wide);
        stream.synchronize();
        EXPECT_THAT(here.values<double>(), testing::Each(sum)) << ranks;
      }
    });
  }
}

TEST_P(Kernels, Elementwise) {
  for (int operation = 0; operation < 6; ++operation) {
    const auto binary = static_cast<kernel::Binary>(operation);
    for (const std::int64_t count : {1, 31, 1000}) {
      const std::string what = "elementwise " + std::to_string(operation);
      const Fillings fillings{{}, {}, fill_divisors};
      compare(what,
              {{{count}, {count}, {count}},
               [=](const Tensors& t) { return op::elementwise(binary, t[0], t[1], t[2]); },
               fillings},
              GetParam());
      compare(what + " in place",
              {{{count}, {}, {count}},
               [=](const Tensors& t) { return op::elementwise(binary, t[0], t[0], t[2]); },
               fillings},
              GetParam());
    }
  }
}

TEST_P(Kernels, ScaleAdd) {
  for (const auto& [alpha, beta] : {std::pair{2.0, 0.0}, {1.0, 1.0}, {-3.0, 2.0}, {0.0, 1.0}}) {
    compare("scale_add",
            {{{257}, {257}}, [=, a = alpha, b = beta](const Tensors& t) { return op::scale_add(t[0], t[1], a, b); }},
            GetParam());
  }
}

TEST_P(Kernels, Rectifiers) {
  compare("relu", {{{99}, {99}}, [](const Tensors& t) { return op::relu(t[0], t[1]); }}, GetParam(), true);
  compare("relu_gradient", {{{99}, {99}, {99}}, [](const Tensors& t) { return op::relu_gradient(t[0], t[1], t[2]); }},
          GetParam(), true);
}

TEST_P(FloatingKernels, SquareRoot) {
  for (const auto& [count, in, out] : {std::tuple<std::int64_t, double, double>{1, 0, 0}, {31, 2, 0.5}, {1000, 0, 0}}) {
    const auto root = [in = in, out = out](const Tensors& t) { return op::square_root(t[0], t[1], in, out); };
    compare("square_root", {{{count}, {count}}, root}, GetParam());
  }
}

TEST_P(Kernels, AddBias) {
  for (const auto& [rows, columns] : {std::pair{37, 45}, {37, 48}, {1, 1}, {3, 9000}, {700, 16}, {0, 5}}) {
    compare("add_bias", {{{rows, columns}, {columns}}, [](const Tensors& t) { return op::add_bias(t[0], t[1]); }},
            GetParam());
  }
}

TEST_P(Kernels, SumAxis) {
  const std::vector<std::tuple<Shape, Shape, int>> cases{
      {{37, 45}, {45}, 0}, {{37, 45}, {37}, 1}, {{3, 70, 5}, {3, 5}, 1}, {{300}, {}, 0},
      {{1, 1}, {1}, 1},    {{4, 0}, {4}, 1},    {{0, 4}, {4}, 0},        {{3, 300}, {3}, 1}};
  for (const auto& [from, to, axis] : cases) {
    compare("sum_axis " + std::to_string(axis),
            {{to, from}, [axis = axis](const Tensors& t) { return op::sum_axis(t[0], t[1], axis); }}, GetParam());
  }
}

// Sums that are divided into parts: a vector, few columns, few rows.
TEST_P(Kernels, SumsOfManyTerms) {
  const std::vector<std::tuple<Shape, Shape, int>> cases{{{20000}, {}, 0}, {{3000, 7}, {7}, 0}, {{2, 9000}, {2}, 1}};
  for (const auto& [from, to, axis] : cases) {
    compare("sum_axis " + std::to_string(axis),
            {{to, from}, [axis = axis](const Tensors& t) { return op::sum_axis(t[0], t[1], axis); }}, GetParam(), false,
            is_half_type(GetParam()) ? 1 : 16);
  }
}

// 16 bytes at once where the memory is aligned, single elements where it is not.
TEST_P(Kernels, UnalignedOperands) {
  for (const std::int64_t first : {0, 1}) {
    for (const std::int64_t count : {1, 15, 16, 17, 1000}) {
      compare("elementwise",
              {{{count + first}, {count + first}, {count + first}},
               [=](const Tensors& t) {
                 const auto part = [&](const Tensor& whole) { return whole.slice(first, count); };
                 return op::elementwise(kernel::Binary::add, part(t[0]), part(t[1]), part(t[2]));
               }},
              GetParam());
    }
  }
}

TEST_P(Kernels, AddBiasToOneAndToManyColumns) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1000, 1}, {3, 2000}, {2000, 3}}) {
    compare("add_bias", {{{rows, columns}, {columns}}, [](const Tensors& t) { return op::add_bias(t[0], t[1]); }},
            GetParam());
  }
}

// Every index occurs often, in few rows, in one sorted run, in several that are merged, and in more than are sorted
// together. The order is that of the rows, so even sums are those of the cpu engine. Halves are rounded once a turn.
TEST_P(Kernels, ScatterManyRows) {
  for (const std::int64_t count : {200, 700, 5000, 70'000}) {
    const std::int64_t width = count > 10'000 ? 1 : 9;
    for (const kernel::Scatter operation : {kernel::Scatter::replace, kernel::Scatter::add, kernel::Scatter::maximum}) {
      const Sample sample{
          {{40, width}, {count, width}, {count}},
          [=](const Tensors& t) { return op::scatter_rows(operation, t[0], t[1], t[2]); },
          {{}, {}, [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 39, random); }},
          {{2, DType::i64}}};
      const bool adds_in_turns = operation == kernel::Scatter::add && count > 65'536;
      if (adds_in_turns && is_half_type(GetParam())) continue;
      compare("scatter_rows of " + std::to_string(count), sample, GetParam(), true);
    }
  }
}

TEST_P(Kernels, ScatterRows) {
  const auto below_20 = [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 20, random); };
  for (int operation = 0; operation < 7; ++operation) {
    for (const std::int64_t count : {0, 1, 9}) {  // of 20 rows; few of them twice, so that halves are rounded once
      Sample sample{
          {{20, 300}, {count, 300}, {count}},
          [=](const Tensors& t) { return op::scatter_rows(static_cast<kernel::Scatter>(operation), t[0], t[1], t[2]); },
          {{}, fill_divisors, below_20},
          {{2, DType::i64}}};
      if (is_half_type(GetParam()) && operation > 0) {  // each row once
        sample.fillings[2] = [](const Tensor& tensor, std::mt19937_64&) {
          for (std::size_t i = 0; i < tensor.values<std::int64_t>().size(); ++i) {
            tensor.values<std::int64_t>()[i] = static_cast<std::int64_t>(i) * 2;
          }
        };
      }
      compare("scatter_rows " + std::to_string(operation), sample, GetParam());
    }
  }
}

TEST_P(Kernels, PlaceAndTakeAlong) {
  for (const std::int64_t width : {1, 3, 4, 32}) {
    compare("place_along",
            {{{6, 8, width}, {6, 3, width}}, [](const Tensors& t) { return op::place_along(t[0], t[1], 1, 5); }},
            GetParam(), true);
    compare("take_along",
            {{{6, 3, width}, {6, 8, width}}, [](const Tensors& t) { return op::take_along(t[0], t[1], 1, 2); }},
            GetParam(), true);
  }
}

TEST_P(Kernels, Casts) {
  const auto special = [](const Tensor& tensor, std::mt19937_64&) { fill_special(tensor); };
  for (const DType to : kAll) {
    compare("cast from " + std::string(name_of(to)),
            {{{48}, {48}}, [](const Tensors& t) { return op::cast(t[0], t[1]); }, {{}, special}, {{1, to}}}, GetParam(),
            true);
  }
}

// The order in which products are added is the library's own, and with it the rounding of each sum.
TEST_P(FloatingKernels, Gemm) {
  const bool is_summed_in_its_type = GetParam() == DType::f32 || GetParam() == DType::f64;
  for (const bool flips_a : {false, true}) {
    for (const bool flips_b : {false, true}) {
      for (const std::int64_t k : {0, 1, 40}) {
        const Shape a = flips_a ? Shape{k, 33} : Shape{33, k}, b = flips_b ? Shape{17, k} : Shape{k, 17};
        for (const double beta : {0.0, 0.5}) {
          compare("gemm",
                  {{{33, 17}, a, b},
                   [=](const Tensors& t) { return op::gemm(t[0], t[1], t[2], flips_a, flips_b, 1.5, beta); }},
                  GetParam(), false, is_summed_in_its_type ? k : 1);
        }
      }
    }
  }
}

// Parts of a sum of halves are added in f32, so that the error does not grow with the number of terms.
TEST_P(FloatingKernels, GemmOfManyTerms) {
  constexpr std::int64_t kTerms = 16384;
  const bool is_summed_in_its_type = GetParam() == DType::f32 || GetParam() == DType::f64;
  compare("gemm",
          {{{4, 5}, {4, kTerms}, {kTerms, 5}},
           [](const Tensors& t) { return op::gemm(t[0], t[1], t[2], false, false, 1.0 / 64, 0); }},
          GetParam(), false, is_summed_in_its_type ? kTerms : 1);
}

TEST_P(FloatingKernels, SoftmaxCrossEntropy) {
  for (const auto& [rows, classes] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 10}, {50, 33}, {17, 100}, {3, 1500}}) {
    const auto labels = [classes = classes](const Tensor& tensor, std::mt19937_64& random) {
      fill_below(tensor, classes, random);
    };
    const auto make = [](const Tensors& t, bool in_place) {
      return op::softmax_cross_entropy({.loss = t[0],
                                        .gradient = in_place ? t[3] : t[1],
                                        .correct = t[2],
                                        .logits = t[3],
                                        .labels = t[4],
                                        .loss_scale = 0.25,
                                        .gradient_scale = 2});
    };
    for (const bool in_place : {false, true}) {
      compare("softmax_cross_entropy",
              {{{1}, {rows, classes}, {1}, {rows, classes}, {rows}},
               [=](const Tensors& t) { return make(t, in_place); },
               {{}, {}, {}, {}, labels},
               {{2, DType::i64}, {4, DType::i32}}},
              GetParam());
    }
  }
}

}  // namespace
}  // namespace tandem
