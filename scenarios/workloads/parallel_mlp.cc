#include "scenarios/workloads/parallel_mlp.h"

#include <algorithm>
#include <numeric>

#include "scenarios/parallel_settings.h"
#include "scenarios/workloads/he_uniform.h"
#include "strategies/input/staging.h"

namespace tandem {

ParallelMlpWorkload::ParallelMlpWorkload(const MlpSettings& settings, Worker& worker, const ParallelOptions& options,
                                         TrainerFactory make_trainer)
    : settings_(settings), worker_(worker), options_(options), make_trainer_(std::move(make_trainer)) {}

void ParallelMlpWorkload::prepare() {
  TrainTestSplit split = split_rows(*settings_.rows);
  test_ = std::move(split.test);
  LinearStack stack = linear_stack(settings_);
  stack.initial_weights = [sizes = stack.sizes, seed = settings_.seed](int layer) {
    const auto index = static_cast<std::size_t>(layer);
    return he_uniform(sizes[index], sizes[index] * sizes[index + 1], seed + index);
  };
  trainer_ = make_trainer_(worker_, std::move(stack), options_);
  dataset_ = Dataset::from_tensor_slices({HostArray{.row_shape = {split.train.columns}, .values = split.train.values},
                                          HostArray{.row_shape = {}, .values = split.train.labels}})
                 .shuffle(settings_.seed)
                 .repeat()
                 .batch(options_.batch);
  iterator_ = dataset_->iterator();
}

void ParallelMlpWorkload::run_step(int /*step*/) {
  const Value batch = stage(worker_, worker_.cpu(), {&worker_.cpu()}, {iterator_->next().value()}, false).value;
  losses_.push_back(trainer_->train_step(batch.parts()[0].tensor(), batch.parts()[1].tensor()));
}

// Computes the accuracy on the host, with copies of the trained parameters.
double ParallelMlpWorkload::test_accuracy() {
  Device& host = worker_.cpu();
  Stream& stream = host.compute_stream();
  Tensor values = host.allocate(DType::f32, {test_.rows(), test_.columns});
  const Tensor labels = host.allocate(DType::i32, {test_.rows()});
  std::copy(test_.values.begin(), test_.values.end(), values.values<float>().begin());
  std::copy(test_.labels.begin(), test_.labels.end(), labels.values<std::int32_t>().begin());
  const auto layers = static_cast<int>(settings_.hidden.size()) + 1;
  for (int layer = 0; layer < layers; ++layer) {
    const LinearTensors parameters = trainer_->read_layer(layer);
    const Tensor output = host.allocate(DType::f32, {test_.rows(), parameters.bias.element_count()});
    const LinearOps ops(stream, layer);
    ops.product(output, values, parameters.weights);
    ops.activate(output, parameters.bias, layer + 1 < layers);
    values = output;
  }
  const Tensor loss = host.allocate(DType::f32, {1});
  const Tensor correct = host.allocate(DType::f32, {1});
  stream.launch(op::softmax_cross_entropy(
      {.loss = loss, .gradient = {}, .correct = correct, .logits = values, .labels = labels}));
  stream.synchronize();
  return static_cast<double>(correct.values<float>()[0]) / test_.rows();
}

void ParallelMlpWorkload::finish(Report& report, bool carries_values) {
  report.metrics["memory_peak_bytes"] = memory_peak_bytes(worker_);
  if (!carries_values) return;
  std::vector<float> losses;
  for (const Tensor& parts : losses_) {
    const std::span<const float> values = parts.values<float>();
    losses.push_back(std::accumulate(values.begin(), values.end(), 0.0F));
  }
  const bool is_alone = worker_.count() == 1;
  if (!is_alone) losses = sum_over_workers(worker_, std::move(losses));
  report.loss.assign(losses.begin(), losses.end());
  if (is_alone) report.metrics["test_accuracy"] = test_accuracy();  // no worker has all parameters otherwise
}

double memory_peak_bytes(const Worker& worker) {
  std::int64_t peak = 0;
  for (const Device* device : worker.devices()) peak = std::max(peak, device->memory_peak_bytes());
  return static_cast<double>(peak);
}

}  // namespace tandem
