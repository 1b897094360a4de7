// Tables of layers that are really computed: every way to divide a model learns what one device learns, and gradients
// are those of the loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "scenarios/workloads/computed/computed_model.h"
#include "scenarios/workloads/trainable.h"
#include "strategies/cross_device/host_values.h"
#include "tests/scenarios/computed_ways.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = "gpt_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}";

class ComputedLayers : public testing::TestWithParam<Way> {};

TEST_P(ComputedLayers, LearnWhatOneDeviceLearns) {
  expect_same_losses(kModel, GetParam(), kThreads);
}

TEST_P(ComputedLayers, LearnItOnSimulatedGpus) {
  expect_same_losses(kModel, GetParam(), kSimulated);
}

const std::vector<Way> kWays{
    {"replicated", "name: mirrored"},
    {"replicated_in_passes", "name: mirrored", 2, ", gradient_accumulation_steps: 2"},
    {"central", "name: central_storage", 2},
    {"sharded", "name: fully_sharded"},
    {"sharded_in_passes", "name: fully_sharded", 2, ", gradient_accumulation_steps: 2"},
    {"sharded_again", "name: fully_sharded", 4, ", activation_checkpointing: true"},
    {"replicated_attention_again", "name: mirrored", 2, ", activation_checkpointing: {modules: [core_attn]}"},
    {"pipeline_parts_again", "name: mesh, data: 2, pipeline: 2, micro_batches: 2", 4,
     ", activation_checkpointing: {modules: [core_attn, mlp]}"},
    {"sharded_together", "name: fully_sharded", 2, ", activation_checkpointing: {together: 2}"},
    {"tensor_every_other", "name: tensor_parallel", 2,
     ", activation_checkpointing: {every: 2}, sequence_parallel: true"},
    {"data", "name: mesh, data: 4"},
    {"tensor", "name: tensor_parallel"},
    {"tensor_in_turn", "name: tensor_parallel", 4, ", overlap_tensor: false"},
    {"sequence", "name: tensor_parallel", 4, ", sequence_parallel: true"},
    {"sequence_in_turn", "name: tensor_parallel", 2, ", sequence_parallel: true, overlap_tensor: false"},
    {"context", "name: mesh, context: 4"},
    {"ring", "name: mesh, context: 4, context_exchange: ring"},
    {"ring_again", "name: mesh, data: 2, context: 2, micro_batches: 2, context_exchange: ring", 4,
     ", activation_checkpointing: {modules: [core_attn]}"},
    {"ring_and_rows", "name: mesh, tensor: 2, context: 2, pipeline: 2, micro_batches: 4, context_exchange: ring", 8,
     ", sequence_parallel: true"},
    {"heads", "name: mesh, context: 4, context_exchange: all_to_all"},
    {"heads_again", "name: mesh, context: 2, pipeline: 2, micro_batches: 4, context_exchange: all_to_all", 4,
     ", activation_checkpointing: {modules: [core_attn]}"},
    {"heads_and_rows", "name: mesh, tensor: 2, context: 2, pipeline: 2, micro_batches: 4, context_exchange: all_to_all",
     8, ", sequence_parallel: true"},
    {"dropout_of_heads", "name: mesh, data: 2, tensor: 2, context: 2, context_exchange: all_to_all", 8,
     ", dropout: 0.25, sequence_parallel: true"},
    {"dropout_in_rounds", "name: mesh, context: 4, context_exchange: ring", 4, ", dropout: 0.25"},
    {"pipeline", "name: pipeline_parallel, micro_batches: 4"},
    {"pipeline_again", "name: pipeline_parallel, micro_batches: 4", 2, ", activation_checkpointing: true"},
    {"interleaved", "name: pipeline_parallel, micro_batches: 4, virtual_stages: 2", 2},
    {"rows_and_divided_state", "name: mesh, data: 2, tensor: 2, distributed_optimizer: true", 4,
     ", sequence_parallel: true"},
    {"divided_state", "name: mesh, data: 4, distributed_optimizer: true"},
    {"divided_state_gathered_late",
     "name: mesh, data: 2, tensor: 2, distributed_optimizer: true, overlap_gather: true"},
    {"divided_state_of_tied_tables", "name: mesh, data: 4, pipeline: 2, micro_batches: 2, distributed_optimizer: true",
     8},
    {"divided_state_of_tied_parts",
     "name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 4, distributed_optimizer: true, overlap_gather: true",
     8, ", sequence_parallel: true"},
    {"pieces", "name: mesh, data: 4, shard_parameters: true"},
    {"pieces_in_passes", "name: mesh, data: 2, micro_batches: 4, shard_parameters: true", 2},
    {"pieces_again", "name: mesh, data: 2, micro_batches: 2, shard_parameters: true", 2,
     ", activation_checkpointing: true"},
    {"pieces_of_parts", "name: mesh, data: 2, tensor: 2, shard_parameters: true", 4, ", sequence_parallel: true"},
    {"pieces_of_sequences", "name: mesh, data: 2, context: 2, shard_parameters: true"},
    {"pieces_in_groups", "name: mesh, data: 4, shard_parameters: true, replicate: 2"},
    {"pieces_in_groups_and_passes", "name: mesh, data: 4, micro_batches: 2, shard_parameters: true, replicate: 2"},
    {"divided_state_in_groups", "name: mesh, data: 4, distributed_optimizer: true, replicate: 2"},
    {"divided_state_in_groups_of_one", "name: mesh, data: 4, distributed_optimizer: true, replicate: 4"},
    {"divided_tables_in_groups",
     "name: mesh, data: 4, pipeline: 2, micro_batches: 2, distributed_optimizer: true, replicate: 2", 8},
    {"adam", "name: mesh, data: 2, tensor: 2", 4, ""},
    {"all", "name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 2, distributed_optimizer: false", 8,
     ", sequence_parallel: true, activation_checkpointing: true"},
    {"nearer_stages", "name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 2, axis_order: tensor_pipeline_data",
     8, ", sequence_parallel: true"},
    {"nearer_stages_of_pieces",
     "name: mesh, data: 2, context: 2, pipeline: 2, micro_batches: 2, distributed_optimizer: true, replicate: 2, "
     "axis_order: tensor_pipeline_data",
     8},
    {"context_and_rows", "name: mesh, tensor: 2, context: 2, pipeline: 2, micro_batches: 4", 8,
     ", sequence_parallel: true"},
    {"dropout", "name: mesh, data: 2, tensor: 2, context: 2", 8, ", dropout: 0.25, sequence_parallel: true"},
    {"dropout_replicated", "name: mirrored", 2, ", dropout: 0.25"},
};

INSTANTIATE_TEST_SUITE_P(Ways, ComputedLayers, testing::ValuesIn(kWays),
                         [](const auto& instance) { return instance.param.name; });

// The whole model on one device, with its parameters and gradients in flat tensors.
class WholeModel {
 public:
  WholeModel(Worker& worker, const std::string& workload) : device_(*worker.devices().front()) {
    const Scenario scenario = parse_scenario("schema_version: 1\nworkload: " + workload + "\nsteps: 1\n", "whole.yaml");
    model_ = trainable_model(scenario.workload, worker);
    const std::vector<StagePart> parts{{.end = layers().size(), .examples = scenario.workload.batch}};
    stage_ = std::move(model_->make_stages(device_, worker.cpu(), parts).front());
    pass_.examples = scenario.workload.batch;
    model_->make_batch(0, worker.cpu());
    batch_ = model_->host_batch({.examples = pass_.examples, .has_inputs = true, .has_labels = true}, worker.cpu());
    for (std::size_t i = 0; i < layers().size(); ++i) {
      const std::int64_t count = std::max<std::int64_t>(1, layers()[i].parameters());
      const FirstValues values = model_->first_values(i, parts.front());
      const Tensor flat = host_tensor(worker.cpu(), DType::f64, {count},
                                      [&values](std::int64_t element) { return values ? values(element) : 0; });
      worker.cpu().compute_stream().synchronize();
      parameters_.push_back(flat);
      gradients_.push_back(worker.cpu().allocate(DType::f64, {count}));
    }
  }

  const std::vector<Layer>& layers() const { return model_->model().layers; }
  double& parameter(std::size_t layer, std::int64_t element) {
    return parameters_[layer].values<double>()[static_cast<std::size_t>(element)];
  }
  double gradient(std::size_t layer, std::int64_t element) const {
    return gradients_[layer].values<double>()[static_cast<std::size_t>(element)];
  }

  double loss() {
    stage_->begin_step(batch_);
    stage_->begin_forward(pass_, {});
    for (std::size_t i = 0; i < layers().size(); ++i) {
      stage_->launch(Work::product, i, pass_, tensors(i));
      stage_->launch(Work::operations, i, pass_, tensors(i));
    }
    device_.synchronize();
    return stage_->losses().values<double>()[0];
  }
  void backward() {
    stage_->begin_backward(pass_, {});
    for (std::size_t i = layers().size(); i-- > 0;) {
      for (const Work work :
           {Work::operations_gradient, Work::product_again, Work::weight_gradient, Work::input_gradient}) {
        stage_->launch(work, i, pass_, tensors(i));
      }
    }
    device_.synchronize();
  }

 private:
  LayerTensors tensors(std::size_t layer) const {
    LayerTensors tensors{.parameters = parameters_[layer], .gradients = gradients_[layer]};
    if (!layers()[layer].shared_weights) return tensors;
    tensors.shared_parameters = parameters_[0];
    tensors.shared_gradients = gradients_[0];
    return tensors;
  }

  Device& device_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<StageModel> stage_;
  Pass pass_{};
  Batch batch_{};
  std::vector<Tensor> parameters_, gradients_;
};

// Compares some gradients of each layer, spread over its parameters, with differences of losses.
void expect_gradients_of_the_loss(const std::string& workload) {
  open_engine("cpu", {})->run([&](Worker& worker) {
    WholeModel model(worker, workload);
    model.loss();
    model.backward();
    for (std::size_t layer = 0; layer < model.layers().size(); ++layer) {
      const std::int64_t count = model.layers()[layer].parameters();
      for (std::int64_t element = 0; element < count; element += 1 + count / 7) {
        constexpr double kStep = 1e-5;
        double& value = model.parameter(layer, element);
        const double before = value;
        value = before + kStep;
        const double above = model.loss();
        value = before - kStep;
        const double below = model.loss();
        value = before;
        const double expected = (above - below) / (2 * kStep);
        EXPECT_NEAR(model.gradient(layer, element), expected, 1e-8 + 1e-5 * std::abs(expected))
            << model.layers()[layer].name << ", element " << element;
      }
    }
  });
}

TEST(ComputedGradients, AreThoseOfTheLossOfAGpt) {
  expect_gradients_of_the_loss(
      "{kind: layers, model: gpt_tiny, sizes: {layers: 2, hidden: 16, tokens: 8}, batch: 3, values: real, dtype: f64}");
}

TEST(ComputedGradients, AreThoseOfTheLossOfExperts) {
  expect_gradients_of_the_loss("{kind: layers, model: " TANDEM_SOURCE_DIR
                               "/tests/scenarios/good/files/mixture_tiny.yaml, batch: 3, values: real, dtype: f64}");
}

TEST(ComputedGradients, AreThoseOfTheLossOfALlama) {
  expect_gradients_of_the_loss("{kind: layers, model: " TANDEM_SOURCE_DIR
                               "/tests/scenarios/good/files/llama_tiny.yaml, batch: 3, values: real, dtype: f64}");
}

std::string refusal_of(const std::string& workload) {
  try {
    parse_scenario("schema_version: 1\nworkload: {kind: layers, batch: 8, values: real, " + workload + "}\nsteps: 1\n",
                   "refused.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Two heads of keys do not divide among four devices, though four heads of queries do.
TEST(ComputedLayersReader, SaysWhatCannotBeComputedDivided) {
  const std::string text = "schema_version: 1\nworkload: {kind: layers, model: " TANDEM_SOURCE_DIR
                           "/tests/scenarios/good/files/llama_tiny.yaml, batch: 4, values: real}\n"
                           "strategy: {name: tensor_parallel}\ndevices: {per_worker: 4}\nsteps: 1\n";
  try {
    parse_scenario(text, "divided.yaml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("strategy.tensor: 4 tensor-parallel devices do not divide the 2 heads of keys"));
  }
}

TEST(ComputedLayersReader, SaysWhatCannotBeComputed) {
  EXPECT_THAT(refusal_of("model: resnet50"), HasSubstr("is a convolution"));
  EXPECT_THAT(refusal_of("model: gpt_tiny, dtype: bf16"), HasSubstr("f32 or f64"));
  EXPECT_THAT(refusal_of("model: gpt_tiny, optimizer: lamb"), HasSubstr("lamb is not computed"));
  EXPECT_THAT(refusal_of("model: gpt_tiny, variables: tensors"), HasSubstr("variables by bucket"));
  EXPECT_THAT(refusal_of("model: bert_base"), HasSubstr("more than words and positions"));
  EXPECT_THAT(refusal_of("model: gpt_tiny, sizes: {tokens: 8192}"), HasSubstr("4708 bytes"));
  EXPECT_THAT(refusal_of("model: gpt_tiny, values: none, dropout: 0.1"), HasSubstr(""));
  EXPECT_EQ(refusal_of("model: gpt_tiny"), "");
  const Scenario tied = parse_scenario(text_of(kModel, {"tied", "name: one_device", 1}, kThreads), "tied.yaml");
  const auto problem = computed_division_problem(std::get<LayersSettings>(tied.workload.kind),
                                                 {.data = 3, .pipeline = 2, .distributed_optimizer = true});
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->path, "strategy.distributed_optimizer");
  EXPECT_THAT(problem->message, HasSubstr("3 devices do not divide the 8192 elements of the table"));
}

}  // namespace
}  // namespace tandem
