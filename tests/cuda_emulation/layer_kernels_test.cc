// The kernels of layers beside the cpu engine's, on equal random operands.
#include "engine/layer_ops.h"

#include <cmath>
#include <numeric>

#include "tests/cuda_emulation/compared_kernels.h"

namespace tandem {
namespace {

class LayerKernels : public OnTypesOfGpus {
 protected:
  static DType statistics_type() { return GetParam() == DType::f64 ? DType::f64 : DType::f32; }
  static std::int64_t terms_of(std::int64_t count) { return is_half_type(GetParam()) ? 1 : count; }
};
const std::vector<DType> kFloatingTypes{DType::f64, DType::f32, DType::f16, DType::bf16};
INSTANTIATE_TEST_SUITE_P(Types, LayerKernels, testing::ValuesIn(kFloatingTypes), name_of_type);

// Matrices that a warp takes a row of, and such that a block does.
const std::vector<Shape> kMatrices{{1, 1}, {5, 33}, {20, 64}, {3, 1500}, {0, 4}};

TEST_P(LayerKernels, BatchedGemm) {
  const auto terms = [](std::int64_t k) { return terms_of(k); };
  for (const bool flips_a : {false, true}) {
    for (const bool flips_b : {false, true}) {
      for (const std::int64_t k : {0, 1, 20}) {
        const Shape a = flips_a ? Shape{3, k, 9} : Shape{3, 9, k}, b = flips_b ? Shape{3, 7, k} : Shape{3, k, 7};
        for (const double beta : {0.0, 0.5}) {
          compare("batched_gemm",
                  {{{3, 9, 7}, a, b},
                   [=](const Tensors& t) { return op::batched_gemm(t[0], t[1], t[2], flips_a, flips_b, 1.5, beta); }},
                  GetParam(), false, terms(k));
        }
      }
    }
  }
}

TEST_P(LayerKernels, Softmax) {
  for (const Shape& shape : kMatrices) {
    for (const op::SoftmaxSettings settings :
         {op::SoftmaxSettings{}, {.scale = 0.25, .queries = 2, .first_query = 3}, {.queries = 3}}) {
      compare("softmax", {{shape, shape}, [=](const Tensors& t) { return op::softmax(t[0], t[1], settings); }},
              GetParam());
      compare("softmax in place", {{shape}, [=](const Tensors& t) { return op::softmax(t[0], t[0], settings); }},
              GetParam());
    }
    compare("softmax_gradient",
            {{shape, shape, shape}, [](const Tensors& t) { return op::softmax_gradient(t[0], t[1], t[2], 0.01); }},
            GetParam());
    compare("softmax_gradient in place",
            {{shape, shape}, [](const Tensors& t) { return op::softmax_gradient(t[0], t[0], t[1], 0.01); }},
            GetParam());
  }
}

TEST_P(LayerKernels, SoftmaxOfNanAndInfinities) {
  const auto special = [](const Tensor& tensor, std::mt19937_64&) { fill_special(tensor); };
  compare("softmax", {{{12, 2}, {12, 2}}, [](const Tensors& t) { return op::softmax(t[0], t[1]); }, {{}, special}},
          GetParam());
  compare("causal softmax",
          {{{6, 4}, {6, 4}}, [](const Tensors& t) { return op::softmax(t[0], t[1], {.queries = 3}); }, {{}, special}},
          GetParam());
}

TEST_P(LayerKernels, Norms) {
  for (const Shape& shape : kMatrices) {
    const std::int64_t rows = shape[0], columns = shape[1];
    for (const bool is_centered : {true, false}) {
      compare("normalize",
              {{shape, {rows, 2}, shape, {columns}, {columns}},
               [=](const Tensors& t) {
                 return op::normalize(t[0], t[1], t[2], t[3], is_centered ? t[4] : Tensor(), 0.125);
               },
               {},
               {{1, statistics_type()}}},
              GetParam(), false, 4);
      for (const bool in_place : {false, true}) {
        compare("normalize_gradient",
                {{shape, shape, shape, {rows, 2}, {columns}},
                 [=](const Tensors& t) {
                   return op::normalize_gradient(t[0], in_place ? t[0] : t[1], t[2], t[3], t[4], is_centered);
                 },
                 {},
                 {{3, statistics_type()}}},
                GetParam(), false, terms_of(8));
      }
    }
  }
}

// Few rows, and so many that they are divided into parts; few columns, and several tiles of them.
TEST_P(LayerKernels, ParameterGradientsOfNorms) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{0, 5}, {3, 70}, {500, 33}, {1000, 1}}) {
    for (const bool has_shift : {true, false}) {
      for (const bool accumulates : {true, false}) {
        compare("normalize_parameter_gradients",
                {{{columns}, {columns}, {rows, columns}, {rows, columns}, {rows, 2}},
                 [=](const Tensors& t) {
                   return op::normalize_parameter_gradients(t[0], has_shift ? t[1] : Tensor(), t[2], t[3], t[4],
                                                            accumulates);
                 },
                 {},
                 {{4, statistics_type()}}},
                GetParam(), false, terms_of(16));
      }
    }
  }
}

TEST_P(LayerKernels, Activations) {
  for (const kernel::Activation activation : {kernel::Activation::gelu, kernel::Activation::silu}) {
    for (const std::int64_t count : {0, 1, 31, 1000}) {
      compare("activate", {{{count}, {count}}, [=](const Tensors& t) { return op::activate(activation, t[0], t[1]); }},
              GetParam());
      compare("activation_gradient",
              {{{count}, {count}, {count}},
               [=](const Tensors& t) { return op::activation_gradient(activation, t[0], t[1], t[2]); }},
              GetParam());
      compare(
          "activation_gradient in place",
          {{{count}, {count}}, [=](const Tensors& t) { return op::activation_gradient(activation, t[0], t[0], t[1]); }},
          GetParam());
    }
  }
}

// The same elements are dropped, and others are one product.
TEST_P(LayerKernels, Dropout) {
  const std::vector<op::ElementNumbers> cases{
      {},
      {.first = 3, .offset = (std::int64_t{1} << 35) + 5},
      {.sizes = {1, 1, 5, 7}, .strides = {100, 0, 10, 1}},
      {.first = 2, .offset = 9, .sizes = {1, 3, 1, 64}, .strides = {1000, 1, 0, 3}}};
  for (const op::ElementNumbers& numbers : cases) {
    for (const std::int64_t count : {1, 37, 640}) {
      compare("dropout",
              {{{count}, {count}}, [=](const Tensors& t) { return op::dropout(t[0], t[1], 0.375, 77, numbers); }},
              GetParam(), true);
      compare("dropout in place",
              {{{count}}, [=](const Tensors& t) { return op::dropout(t[0], t[0], 0.375, 77, numbers); }}, GetParam(),
              true);
    }
  }
}

TEST_P(LayerKernels, Rotary) {
  for (const op::RotarySettings settings : {op::RotarySettings{.width = 2},
                                            {.width = 8, .positions = 5, .first = 11},
                                            {.width = 8, .positions = 100, .base = 500, .backward = true}}) {
    compare("rotary", {{{12, 24}, {12, 24}}, [=](const Tensors& t) { return op::rotary(t[0], t[1], settings); }},
            GetParam());
    compare("rotary in place", {{{12, 24}}, [=](const Tensors& t) { return op::rotary(t[0], t[0], settings); }},
            GetParam());
  }
  // More angles than a block computes together.
  compare("rotary of wide heads",
          {{{3, 1400}, {3, 1400}},
           [](const Tensors& t) { return op::rotary(t[0], t[1], {.width = 700, .positions = 3, .first = 1}); }},
          GetParam());
}

TEST_P(LayerKernels, GatherAndAddRows) {
  const auto below_50 = [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 50, random); };
  for (const auto& [count, width] : {std::pair<std::int64_t, std::int64_t>{0, 4}, {1, 1}, {40, 9}, {700, 16}}) {
    for (const bool accumulates : {false, true}) {
      compare("gather_rows",
              {{{count, width}, {20, width}, {count}},
               [=](const Tensors& t) { return op::gather_rows(t[0], t[1], t[2], 15, accumulates); },
               {{}, {}, below_50},
               {{2, DType::i32}}},
              GetParam());
    }
    compare("add_rows",
            {{{20, width}, {count, width}, {count}},
             [](const Tensors& t) { return op::add_rows(t[0], t[1], t[2], 15); },
             {{}, {}, below_50},
             {{2, DType::i32}}},
            GetParam(), true);
  }
}

// Units of 16 bytes down to one element.
TEST_P(LayerKernels, CopyStrided) {
  const std::vector<op::StridedCopy> cases{
      {.sizes = {2, 3, 5, 8}, .to_strides = {120, 8, 24, 1}, .from_strides = {120, 40, 8, 1}},
      {.sizes = {2, 3, 5, 7}, .to_first = 1, .to_strides = {120, 40, 8, 1}, .from_strides = {120, 40, 8, 1}},
      {.sizes = {1, 3, 4, 6}, .to_strides = {0, 24, 6, 1}, .from_strides = {0, 8, 0, 1}},
      {.sizes = {1, 1, 9, 5}, .from_first = 200, .to_strides = {0, 0, 5, 1}, .from_strides = {0, 0, -8, 3}},
      {.sizes = {1, 0, 2, 2}},
      {.sizes = {1, 1, 1, 1}, .to_first = 239, .from_first = 3}};
  for (const op::StridedCopy& copy : cases) {
    compare("copy_strided", {{{240}, {240}}, [=](const Tensors& t) { return op::copy_strided(t[0], t[1], copy); }},
            GetParam(), true);
  }
}

TEST_P(LayerKernels, DividedCrossEntropy) {
  for (const Shape& shape : {Shape{1, 1}, {50, 33}, {3, 1500}, {600, 2}, {0, 4}}) {
    const std::int64_t rows = shape[0], columns = shape[1];
    const auto labels = [columns](const Tensor& tensor, std::mt19937_64& random) {
      fill_below(tensor, 2 * columns, random);
    };
    const auto positive = [](const Tensor& tensor, std::mt19937_64& random) {
      fill_below(tensor, 100, random);
      execute(op::fill(tensor.flat_slice(0, std::min<std::int64_t>(1, tensor.element_count())), 7).kernel);
      Tensor ones = host_tensor(tensor.dtype(), tensor.shape());
      execute(op::fill(ones, 1).kernel);
      execute(op::elementwise(kernel::Binary::add, tensor, tensor, ones).kernel);
    };
    compare("row_maxima", {{{rows}, shape}, [](const Tensors& t) { return op::row_maxima(t[0], t[1]); }}, GetParam(),
            true);
    compare("exponential_sums",
            {{{rows}, {rows}, shape, {rows}, {rows}},
             [=](const Tensors& t) { return op::exponential_sums(t[0], t[1], t[2], t[3], t[4], columns / 2); },
             {{}, {}, {}, {}, labels},
             {{4, DType::i32}}},
            GetParam());
    for (const int kind : {0, 1, 2}) {  // in place, without a gradient, without a loss
      compare("divided_cross_entropy",
              {{{1}, shape, {rows}, {rows}, {rows}, {rows}},
               [=](const Tensors& t) {
                 return op::divided_cross_entropy({.loss = kind == 2 ? Tensor() : t[0],
                                                   .gradient = kind == 1 ? Tensor() : t[1],
                                                   .logits = t[1],
                                                   .maxima = t[2],
                                                   .sums = t[3],
                                                   .targets = t[4],
                                                   .labels = t[5],
                                                   .first = columns / 2,
                                                   .loss_scale = 0.01,
                                                   .gradient_scale = 0.5});
               },
               {{}, {}, {}, positive, {}, labels},
               {{5, DType::i32}}},
              GetParam(), false, terms_of(8));
    }
  }
}

TEST_P(LayerKernels, LargestOfRows) {
  const auto few = [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 4, random); };
  for (const std::int64_t count : {0, 2, 7}) {
    const auto make = [=](const Tensors& t) { return op::largest_of_rows(t[0], t[1], count); };
    compare("largest_of_rows", {{{30, 7}, {30, 7}}, make}, GetParam(), true);
    compare("largest_of_rows, equal ones", {{{30, 7}, {30, 7}}, make, {{}, few}}, GetParam(), true);
    compare("largest_of_rows, special ones",
            {{{6, 8}, {6, 8}}, make, {{}, [](const Tensor& tensor, std::mt19937_64&) { fill_special(tensor); }}},
            GetParam(), true);
  }
}

TEST_P(LayerKernels, Experts) {
  const auto weights = [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 3, random); };
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {10, 16}, {7, 33}, {2, 1200}, {0, 4}}) {
    const Shape all{3, rows, columns}, one{rows, columns}, of_weights{rows, 3};
    for (const bool is_scaled : {false, true}) {
      compare("dispatch_rows",
              {{all, one, of_weights},
               [=](const Tensors& t) { return op::dispatch_rows(t[0], t[1], t[2], is_scaled); },
               {{}, {}, weights}},
              GetParam());
      compare("combine_rows",
              {{one, all, of_weights},
               [=](const Tensors& t) { return op::combine_rows(t[0], t[1], t[2], is_scaled); },
               {{}, {}, weights}},
              GetParam());
    }
    compare("expert_weight_gradients",
            {{of_weights, all, one, of_weights},
             [](const Tensors& t) { return op::expert_weight_gradients(t[0], t[1], t[2], t[3]); },
             {{}, {}, {}, weights}},
            GetParam(), false, terms_of(40));
  }
}

// Blocks that a warp, a block of threads and a thread take, on numbers of all magnitudes: the same bits.
TEST_P(LayerKernels, SmallFloats) {
  if (GetParam() != DType::f32) return;
  const auto spread = [](const Tensor& tensor, std::mt19937_64& random) {
    std::uniform_real_distribution<float> fraction(-1, 1);
    std::uniform_int_distribution<int> exponent(-12, 12);
    for (float& value : tensor.values<float>()) value = std::ldexp(fraction(random), exponent(random));
  };
  const auto special = [](const Tensor& tensor, std::mt19937_64&) { fill_special(tensor); };
  const auto maximum = [](const Tensor& tensor, std::mt19937_64&) { execute(op::fill(tensor, 300).kernel); };
  struct Block {
    ScaleType scale;
    std::int64_t rows, columns;
  };
  const std::vector<Block> blocks{{ScaleType::f32, 0, 0},    {ScaleType::e8m0, 1, 32}, {ScaleType::e8m0, 32, 1},
                                  {ScaleType::e8m0, 1, 0},   {ScaleType::e8m0, 0, 1},  {ScaleType::e8m0, 128, 128},
                                  {ScaleType::e4m3, 16, 16}, {ScaleType::e4m3, 1, 16}, {ScaleType::f32, 1, 128},
                                  {ScaleType::e4m3, 16, 1}};
  for (const Shape& shape : {Shape{1, 1}, Shape{40, 70}, Shape{3, 150, 140}, Shape{2, 2000}, Shape{0, 4}}) {
    compare("raise_maximum",
            {{{1}, shape}, [](const Tensors& t) { return op::raise_maximum(t[0], t[1]); }, {maximum, spread}},
            GetParam(), true);
    for (const SmallFloat format : {SmallFloat::e4m3, SmallFloat::e5m2, SmallFloat::e2m1}) {
      for (const Block& block : blocks) {
        const op::QuantiseSettings settings{format, block.scale, block.rows, block.columns};
        const bool has_maximum = block.scale == ScaleType::e4m3;
        const auto make = [=](const Tensors& t) {
          return op::quantise(t[0], t[1], settings, has_maximum ? t[2] : Tensor());
        };
        compare("quantise", {{shape, shape, {1}}, make, {{}, spread, maximum}}, GetParam(), true);
        compare("quantise special numbers", {{shape, shape, {1}}, make, {{}, special, maximum}}, GetParam(), true);
      }
      compare("quantise by a maximum, in place",
              {{shape, {1}},
               [=](const Tensors& t) { return op::quantise(t[0], t[0], {.format = format}, t[1]); },
               {spread, maximum}},
              GetParam(), true);
    }
  }
}

// Sums whose bits depend on the order of their terms. The threads of emulated blocks do not run in the same order
// twice.
TEST_P(LayerKernels, SumsAreTheSameOnEveryRun) {
  const std::vector<Sample> samples{
      {{{33}, {33}, {700, 33}, {700, 33}, {700, 2}},
       [](const Tensors& t) { return op::normalize_parameter_gradients(t[0], t[1], t[2], t[3], t[4], true); },
       {},
       {{4, statistics_type()}}},
      {{{10, 3}, {500, 3}, {500}},
       [](const Tensors& t) { return op::add_rows(t[0], t[1], t[2], 0); },
       {{}, {}, [](const Tensor& tensor, std::mt19937_64& random) { fill_below(tensor, 10, random); }},
       {{2, DType::i32}}},
      {{{4, 1500}, {4, 1500}}, [](const Tensors& t) { return op::softmax(t[0], t[1]); }}};
  for (const Sample& sample : samples) {
    const Tensors operands = host_operands(sample, GetParam());
    const Tensors first = actual_of(sample, operands);
    for (int run = 0; run < 3; ++run) {
      const Tensors again = actual_of(sample, operands);
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(difference(again[i], first[i], 0), "") << "operand " << i;
    }
  }
}

}  // namespace
}  // namespace tandem
