// What the tests of kernels share: an op on equal operands, on a GPU and by the cpu engine. Halves are compared with
// f32 rounded once.
//
// What is not equal by definition may differ by: f64 1e-12, f32 1e-5 (sums of some hundred terms in another order),
// f16 2^-10 and bf16 2^-7 (one unit in the last place), relative to the larger of 1 and the value.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/kernels/kernels.h"
#include "tests/cuda_emulation/on_gpus.h"
#include "tests/cuda_emulation/typed_values.h"
#include "tests/engine/host_tensor.h"

namespace tandem {

using Tensors = std::vector<Tensor>;
using Fillings = std::vector<std::function<void(const Tensor&, std::mt19937_64&)>>;

// Operands of the tested type, unless `types` says another; what they contain at first; and the op on them.
struct Sample {
  std::vector<Shape> shapes;
  std::function<Op(const Tensors&)> make;
  Fillings fillings{};  // random where there is none
  std::map<std::size_t, DType> types{};
};

inline double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-12;
    case DType::f32:
      return 1e-5;
    case DType::f16:
      return 1.0 / 1024;
    default:
      return 1.0 / 128;
  }
}

inline Tensors host_operands(const Sample& sample, DType dtype) {
  std::mt19937_64 random(7);
  Tensors operands;
  for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
    const auto type = sample.types.find(i);
    operands.push_back(host_tensor(type == sample.types.end() ? dtype : type->second, sample.shapes[i]));
    if (i < sample.fillings.size() && sample.fillings[i]) {
      sample.fillings[i](operands[i], random);
    } else {
      fill_random(operands[i], random);
    }
  }
  return operands;
}

// What the cpu engine makes of them.
inline Tensors expected_of(const Sample& sample, const Tensors& operands) {
  Tensors wide, results;
  for (const Tensor& operand : operands) {
    wide.push_back(host_tensor(is_half_type(operand.dtype()) ? DType::f32 : operand.dtype(), operand.shape()));
    convert(wide.back(), operand);
  }
  execute(sample.make(wide).kernel);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    results.push_back(host_tensor(operands[i].dtype(), operands[i].shape()));
    convert(results.back(), wide[i]);
  }
  return results;
}

inline Tensors actual_of(const Sample& sample, const Tensors& operands) {
  Tensors results;
  run_on_gpus(1, [&](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    Tensors here, there;
    for (const Tensor& operand : operands) {
      here.push_back(worker.cpu().allocate(operand.dtype(), operand.shape()));
      there.push_back(gpu.allocate(operand.dtype(), operand.shape()));
      convert(here.back(), operand);
      stream.copy(there.back(), here.back());
    }
    stream.launch(sample.make(there));
    for (std::size_t i = 0; i < operands.size(); ++i) stream.copy(here[i], there[i]);
    stream.synchronize();
    for (const Tensor& tensor : here) {
      results.push_back(host_tensor(tensor.dtype(), tensor.shape()));
      convert(results.back(), tensor);
    }
  });
  return results;
}

// `exact`: what neither adds nor rounds. `terms`: how many rounded products an element is the sum of.
inline void compare(const std::string& what, const Sample& sample, DType dtype, bool exact = false,
                    std::int64_t terms = 1) {
  const Tensors operands = host_operands(sample, dtype);
  const Tensors expected = expected_of(sample, operands), actual = actual_of(sample, operands);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const double tolerance =
        exact ? 0 : tolerance_of(operands[i].dtype()) * static_cast<double>(std::max<std::int64_t>(1, terms));
    EXPECT_EQ(difference(actual[i], expected[i], tolerance), "")
        << what << " of " << name_of(dtype) << ", operand " << i << " " << operands[i].shape().text();
  }
}

// Skips where this is linked with CUDA itself, on a machine without a GPU.
class OnTypesOfGpus : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    try {
      open_gpus(1);
    } catch (const UnavailableError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

inline std::string name_of_type(const testing::TestParamInfo<DType>& info) {
  return std::string(name_of(info.param));
}

}  // namespace tandem
