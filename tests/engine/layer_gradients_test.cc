// Gradients of layers' kernels beside finite differences in f64: of sum(weights * output), whose gradient is `weights`.
#include "tests/engine/layer_testing.h"

namespace tandem {
namespace {

Tensor f64(Shape shape) {
  return host_tensor(DType::f64, shape);
}

TEST(LayerGradients, Softmax) {
  for (const op::SoftmaxSettings settings : {op::SoftmaxSettings{}, {.scale = 0.5, .queries = 3, .first_query = 1}}) {
    const Tensor a = varied(DType::f64, {6, 5}, 1), weights = varied(DType::f64, {6, 5}, 2), output = f64({6, 5});
    const auto objective = [&] {
      execute(op::softmax(output, a, settings).kernel);
      return dot(doubles_of(output), doubles_of(weights));
    };
    objective();
    const Tensor gradient = f64({6, 5});
    execute(op::softmax_gradient(gradient, weights, output, settings.scale).kernel);
    expect_gradient(gradient, a, objective, "softmax");
    objective();
    execute(op::softmax_gradient(weights, weights, output, settings.scale).kernel);
    EXPECT_EQ(doubles_of(weights), doubles_of(gradient)) << "in place";
  }
}

TEST(LayerGradients, NormsOfBothKinds) {
  for (const bool is_centered : {true, false}) {
    const Tensor a = varied(DType::f64, {4, 5}, 1), scale = varied(DType::f64, {5}, 2), output = f64({4, 5});
    const Tensor shift = is_centered ? varied(DType::f64, {5}, 3) : Tensor();
    const Tensor weights = varied(DType::f64, {4, 5}, 4), statistics = f64({4, 2});
    const auto objective = [&] {
      execute(op::normalize(output, statistics, a, scale, shift, 0.1).kernel);
      return dot(doubles_of(output), doubles_of(weights));
    };
    objective();
    const Tensor gradient = f64({4, 5}), of_scale = f64({5}), of_shift = is_centered ? f64({5}) : Tensor();
    execute(op::normalize_gradient(gradient, weights, a, statistics, scale, is_centered).kernel);
    execute(op::normalize_parameter_gradients(of_scale, of_shift, weights, a, statistics, false).kernel);
    const std::vector<double> once = doubles_of(of_scale);
    execute(op::normalize_parameter_gradients(of_scale, of_shift, weights, a, statistics, true).kernel);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(of_scale.values<double>()[i], 2 * once[i], 1e-14) << "added to what is there";
      of_scale.values<double>()[i] /= 2;
      if (is_centered) of_shift.values<double>()[i] /= 2;
    }
    expect_gradient(gradient, a, objective, "a");
    expect_gradient(of_scale, scale, objective, "scale");
    if (is_centered) expect_gradient(of_shift, shift, objective, "shift");
    objective();
    execute(op::normalize_gradient(weights, weights, a, statistics, scale, is_centered).kernel);
    EXPECT_EQ(doubles_of(weights), doubles_of(gradient)) << "in place";
  }
}

TEST(LayerGradients, Activations) {
  for (const kernel::Activation activation : {kernel::Activation::gelu, kernel::Activation::silu}) {
    const Tensor a = varied(DType::f64, {30}, 1), weights = varied(DType::f64, {30}, 2);
    const Tensor output = f64({30}), gradient = f64({30});
    execute(op::activation_gradient(activation, gradient, weights, a).kernel);
    expect_gradient(
        gradient, a,
        [&] {
          execute(op::activate(activation, output, a).kernel);
          return dot(doubles_of(output), doubles_of(weights));
        },
        "activation");
  }
}

TEST(LayerGradients, Dropout) {
  const Tensor a = varied(DType::f64, {40}, 1), weights = varied(DType::f64, {40}, 2);
  const Tensor output = f64({40}), gradient = f64({40});
  execute(op::dropout(gradient, weights, 0.25, 7, {}).kernel);
  expect_gradient(
      gradient, a,
      [&] {
        execute(op::dropout(output, a, 0.25, 7, {}).kernel);
        return dot(doubles_of(output), doubles_of(weights));
      },
      "dropout");
}

TEST(LayerGradients, Rotary) {
  op::RotarySettings settings{.width = 4, .positions = 3, .first = 2};
  const Tensor a = varied(DType::f64, {5, 8}, 1), weights = varied(DType::f64, {5, 8}, 2);
  const Tensor output = f64({5, 8}), gradient = f64({5, 8});
  settings.backward = true;
  execute(op::rotary(gradient, weights, settings).kernel);
  settings.backward = false;
  expect_gradient(
      gradient, a,
      [&] {
        execute(op::rotary(output, a, settings).kernel);
        return dot(doubles_of(output), doubles_of(weights));
      },
      "rotary");
}

// Gathered rows, dispatched to experts and combined: the gradient of each is another of these ops.
TEST(LayerGradients, RowsOfTablesAndExperts) {
  const Tensor table = varied(DType::f64, {5, 3}, 1), rows = f64({4, 3}), experts = f64({2, 4, 3}),
               output = f64({4, 3});
  const Tensor indices = whole({4, 1, 1, 9}), weights = varied(DType::f64, {4, 3}, 2);
  const Tensor shares = host_tensor<double>({4, 2}, {0.5, 0, 0, 2, -1, 3, 0.25, 0});
  const auto objective = [&] {
    execute(op::gather_rows(rows, table, indices, 1).kernel);
    execute(op::dispatch_rows(experts, rows, shares, false).kernel);
    execute(op::combine_rows(output, experts, shares, true).kernel);
    return dot(doubles_of(output), doubles_of(weights));
  };
  objective();
  const Tensor of_shares = f64({4, 2}), of_experts = f64({2, 4, 3}), of_rows = f64({4, 3}), of_table = f64({5, 3});
  execute(op::expert_weight_gradients(of_shares, experts, weights, shares).kernel);
  execute(op::dispatch_rows(of_experts, weights, shares, true).kernel);
  execute(op::combine_rows(of_rows, of_experts, shares, false).kernel);
  execute(op::fill(of_table, 0).kernel);
  execute(op::add_rows(of_table, of_rows, indices, 1).kernel);
  expect_gradient(of_table, table, objective, "table");
  // A share of 0 sends the row nowhere: it has no gradient, although a small one would.
  for (const std::size_t chosen : {0U, 3U, 4U, 5U, 6U}) {
    const Tensor share = shares.flat_slice(static_cast<std::int64_t>(chosen), 1);
    expect_gradient(of_shares.flat_slice(static_cast<std::int64_t>(chosen), 1), share, objective, "share");
  }
  for (const std::size_t other : {1U, 2U, 7U}) EXPECT_EQ(of_shares.values<double>()[other], 0);
}

TEST(LayerGradients, DividedCrossEntropy) {
  const Tensor logits = varied(DType::f64, {3, 5}, 1), labels = whole({4, 0, 2});
  const Tensor maxima = f64({3}), sums = f64({3}), targets = f64({3}), loss = f64({1}), gradient = f64({3, 5});
  const auto objective = [&] {
    execute(op::row_maxima(maxima, logits).kernel);
    execute(op::exponential_sums(sums, targets, logits, maxima, labels, 0).kernel);
    execute(op::divided_cross_entropy({.loss = loss,
                                       .gradient = gradient,
                                       .logits = logits,
                                       .maxima = maxima,
                                       .sums = sums,
                                       .targets = targets,
                                       .labels = labels,
                                       .loss_scale = 0.5,
                                       .gradient_scale = 0.5})
                .kernel);
    return loss.values<double>()[0];
  };
  objective();
  const Tensor kept = host_tensor<double>({3, 5}, doubles_of(gradient));
  expect_gradient(kept, logits, objective, "logits");
}

}  // namespace
}  // namespace tandem
