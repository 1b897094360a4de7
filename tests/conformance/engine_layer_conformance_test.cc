// Every op of engine/layer_ops.h on every engine, on devices of this worker and of another, beside the reference
// kernels.
#include "engine/layer_ops.h"

#include <cmath>
#include <functional>

#include "engine/kernels/kernels.h"
#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using Operands = std::vector<Tensor>;

// Operands of f32, but for whole numbers below `whole`; the op makes results of some of them.
struct Operand {
  Shape shape;
  int whole = 0;
};
struct LayerSample {
  std::vector<Operand> operands;
  std::function<Op(const Operands&)> make;
};

std::vector<LayerSample> dense_samples() {
  using kernel::Activation;
  return {
      {{{{2, 3, 4}}, {{2, 3, 5}}, {{2, 4, 5}}},
       [](const Operands& t) { return op::batched_gemm(t[0], t[1], t[2], false, true, 0.5, 1); }},
      {{{{6, 5}}, {{6, 5}}},
       [](const Operands& t) { return op::softmax(t[0], t[1], {.scale = 0.5, .queries = 3, .first_query = 1}); }},
      {{{{6, 5}}, {{6, 5}}, {{6, 5}}}, [](const Operands& t) { return op::softmax_gradient(t[0], t[1], t[2], 0.5); }},
      {{{{4, 6}}, {{4, 2}}, {{4, 6}}, {{6}}, {{6}}},
       [](const Operands& t) { return op::normalize(t[0], t[1], t[2], t[3], t[4], 1e-5); }},
      {{{{4, 6}}, {{4, 2}}, {{4, 6}}, {{6}}},
       [](const Operands& t) { return op::normalize(t[0], t[1], t[2], t[3], {}, 1e-5); }},
      {{{{4, 6}}, {{4, 6}}, {{4, 6}}, {{4, 2}}, {{6}}},
       [](const Operands& t) { return op::normalize_gradient(t[0], t[1], t[2], t[3], t[4], true); }},
      {{{{6}}, {{6}}, {{4, 6}}, {{4, 6}}, {{4, 2}}},
       [](const Operands& t) { return op::normalize_parameter_gradients(t[0], t[1], t[2], t[3], t[4], true); }},
      {{{{50}}, {{50}}}, [](const Operands& t) { return op::activate(Activation::gelu, t[0], t[1]); }},
      {{{{50}}, {{50}}, {{50}}},
       [](const Operands& t) { return op::activation_gradient(Activation::silu, t[0], t[1], t[2]); }},
      {{{{50}}, {{50}}},
       [](const Operands& t) {
         return op::dropout(t[0], t[1], 0.25, 7, {.offset = 9, .sizes = {1, 1, 1, 5}, .strides = {40, 0, 0, 1}});
       }},
      {{{{5, 8}}, {{5, 8}}},
       [](const Operands& t) {
         return op::rotary(t[0], t[1], {.width = 4, .positions = 3, .first = 2, .backward = true});
       }},
  };
}

std::vector<LayerSample> row_samples() {
  return {
      {{{{7, 3}}, {{5, 3}}, {{7}, 9}}, [](const Operands& t) { return op::gather_rows(t[0], t[1], t[2], 2, true); }},
      {{{{5, 3}}, {{7, 3}}, {{7}, 9}}, [](const Operands& t) { return op::add_rows(t[0], t[1], t[2], 2); }},
      {{{{4, 6}}, {{4, 6}}},
       [](const Operands& t) {
         return op::copy_strided(
             t[0], t[1],
             {.sizes = {1, 1, 6, 3}, .to_first = 2, .to_strides = {0, 0, 3, 1}, .from_strides = {0, 0, 1, 6}});
       }},
      {{{{4}}, {{4, 6}}}, [](const Operands& t) { return op::row_maxima(t[0], t[1]); }},
      {{{{4}}, {{4}}, {{4, 6}}, {{4}}, {{4}, 12}},
       [](const Operands& t) { return op::exponential_sums(t[0], t[1], t[2], t[3], t[4], 3); }},
      {{{{1}}, {{4, 6}}, {{4, 6}}, {{4}}, {{4}}, {{4}}, {{4}, 12}},
       [](const Operands& t) {
         return op::divided_cross_entropy({.loss = t[0],
                                           .gradient = t[1],
                                           .logits = t[2],
                                           .maxima = t[3],
                                           .sums = t[4],
                                           .targets = t[5],
                                           .labels = t[6],
                                           .first = 3,
                                           .loss_scale = 0.25,
                                           .gradient_scale = 0.5});
       }},
      {{{{4, 6}}, {{4, 6}}}, [](const Operands& t) { return op::largest_of_rows(t[0], t[1], 2); }},
      {{{{3, 4, 5}}, {{4, 5}}, {{4, 3}}}, [](const Operands& t) { return op::dispatch_rows(t[0], t[1], t[2], true); }},
      {{{{4, 5}}, {{3, 4, 5}}, {{4, 3}}}, [](const Operands& t) { return op::combine_rows(t[0], t[1], t[2], true); }},
      {{{{4, 3}}, {{3, 4, 5}}, {{4, 5}}, {{4, 3}}},
       [](const Operands& t) { return op::expert_weight_gradients(t[0], t[1], t[2], t[3]); }},
      {{{{1}}, {{4, 6}}}, [](const Operands& t) { return op::raise_maximum(t[0], t[1]); }},
      {{{{4, 6}}, {{4, 6}}, {{1}}},
       [](const Operands& t) { return op::quantise(t[0], t[1], {.format = SmallFloat::e5m2}, t[2]); }},
      {{{{2, 9, 40}}, {{2, 9, 40}}},
       [](const Operands& t) {
         return op::quantise(t[0], t[1], {.scale = ScaleType::e8m0, .rows = 1, .columns = 32});
       }},
      {{{{9, 40}}, {{9, 40}}},
       [](const Operands& t) { return op::quantise(t[0], t[1], {.scale = ScaleType::e8m0, .columns = 1}); }},
      {{{{20, 40}}, {{20, 40}}, {{1}}},
       [](const Operands& t) {
         return op::quantise(t[0], t[1],
                             {.format = SmallFloat::e2m1, .scale = ScaleType::e4m3, .rows = 16, .columns = 16}, t[2]);
       }},
  };
}

// From 0.25 to 3, or whole numbers.
Operands host_operands(Worker& worker, const LayerSample& sample) {
  Operands operands;
  std::uint32_t state = 1;
  const auto next = [&state](std::uint32_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  };
  for (const auto& [shape, whole] : sample.operands) {
    operands.push_back(worker.cpu().allocate(whole > 0 ? DType::i32 : DType::f32, shape));
    for (std::int64_t i = 0; i < shape.element_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (whole > 0) {
        operands.back().values<std::int32_t>()[at] = static_cast<std::int32_t>(next(static_cast<std::uint32_t>(whole)));
      } else {
        operands.back().values<float>()[at] = 0.25F + static_cast<float>(next(2816)) / 1024;
      }
    }
  }
  return operands;
}

// Launches on a device, and compares every operand, results among them.
void expect_reference(Worker& worker, Device& device, const LayerSample& sample) {
  const Operands host = host_operands(worker, sample);
  Operands there;
  for (const Tensor& operand : host) {
    there.push_back(device.allocate(operand.dtype(), operand.shape()));
    device.compute_stream().copy(there.back(), operand, Category::input);
  }
  device.compute_stream().synchronize();
  Op op = sample.make(there);
  const std::string name = op.name.text();
  device.compute_stream().launch(std::move(op));
  execute(sample.make(host).kernel);
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i].dtype() != DType::f32) continue;
    const std::vector<float> actual = get(worker, there[i]);
    const std::span<float> expected = host[i].values<float>();
    for (std::size_t at = 0; at < actual.size(); ++at) {
      EXPECT_NEAR(actual[at], expected[at], 1e-5F * std::max(1.0F, std::abs(expected[at])))
          << name << ", element " << at << " of operand " << i;
    }
  }
}

void expect_references(Worker& worker, Device& device) {
  for (const LayerSample& sample : dense_samples()) expect_reference(worker, device, sample);
  for (const LayerSample& sample : row_samples()) expect_reference(worker, device, sample);
}

class EveryEngineHasLayers : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineHasLayers, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(EveryEngineHasLayers, OnItsDevices) {
  run(1, 1, [](Worker& worker) { expect_references(worker, *worker.devices()[0]); });
}

// With graphs, what is launched often becomes one.
TEST_P(EveryEngineHasLayers, AgainAndAgain) {
  run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor a = put(worker, device, std::vector<float>(64, 1)), to = device.allocate(DType::f32, {64});
    for (int step = 0; step < 4; ++step) {
      device.compute_stream().launch(op::softmax(to.reshape({4, 16}), a.reshape({4, 16}), {.scale = 2}));
      device.compute_stream().launch(op::dropout(to, to, 0.5, 3, {.first = 64 * step}));
      device.compute_stream().launch(op::scale_add(a, to, 1, 1));
      device.synchronize();
    }
    const Tensor expected = worker.cpu().allocate(DType::f32, {64}), part = worker.cpu().allocate(DType::f32, {64});
    execute(op::fill(expected, 1).kernel);
    for (int step = 0; step < 4; ++step) {
      execute(op::softmax(part.reshape({4, 16}), expected.reshape({4, 16}), {.scale = 2}).kernel);
      execute(op::dropout(part, part, 0.5, 3, {.first = 64 * step}).kernel);
      execute(op::scale_add(expected, part, 1, 1).kernel);
    }
    const std::vector<float> actual = get(worker, a);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(actual[i], expected.values<float>()[i], 1e-5) << i;
  });
}

class EveryEngineHasLayersElsewhere : public ReachingOthers<EveryEngine> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineHasLayersElsewhere, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(EveryEngineHasLayersElsewhere, OnDevicesOfAnotherWorker) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    DeviceId id = worker.devices()[0]->id();
    id.task = 1;
    expect_references(worker, worker.device(id));
  });
}

}  // namespace
}  // namespace tandem
