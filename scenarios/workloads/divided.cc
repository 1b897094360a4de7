#include "scenarios/workloads/divided.h"

#include <algorithm>

namespace tandem {
namespace {

// Returns the largest memory that a device of this worker has used, in bytes.
double memory_peak_bytes(const Worker& worker) {
  std::int64_t peak = 0;
  for (const Device* device : worker.devices()) peak = std::max(peak, device->memory_peak_bytes());
  return static_cast<double>(peak);
}

}  // namespace

DividedWorkload::DividedWorkload(Worker& worker, std::unique_ptr<TrainableModel> model, const Division& division,
                                 const ParallelOptions& options)
    : worker_(worker), model_(std::move(model)), division_(division), options_(options) {}

void DividedWorkload::prepare() {
  training_ = division_.train(worker_, *model_, options_);
}

void DividedWorkload::run_step(int step) {
  training_->run_step(step);
  ++steps_;
}

Tensor DividedWorkload::evaluate() {
  training_->evaluate(static_cast<int>(steps_) - 1, evaluation()->passes);
  return {};
}

void DividedWorkload::finish(Report& report, bool carries_values) {
  report.metrics["parameters_per_device"] = static_cast<double>(training_->most_parameters());
  report.metrics["memory_peak_bytes"] = memory_peak_bytes(worker_);
  if (!carries_values || !model_->has_values()) return;
  // Only the workers with the last stage know any.
  std::vector<float> losses(steps_);
  std::ranges::transform(training_->losses(), losses.begin(), sum_of_elements);
  if (worker_.count() > 1) losses = sum_over_workers(worker_, std::move(losses));
  report.loss.assign(losses.begin(), losses.end());
  if (rows_ && worker_.count() == 1) report.metrics["test_accuracy"] = test_accuracy();
}

// Computes on the host, with copies of the trained parameters.
double DividedWorkload::test_accuracy() {
  const LabelledRows test = split_rows(*rows_).test;
  Device& host = worker_.cpu();
  Stream& stream = host.compute_stream();
  Tensor values = host.allocate(DType::f32, {test.rows(), test.columns});
  const Tensor labels = host.allocate(DType::i32, {test.rows()});
  std::copy(test.values.begin(), test.values.end(), values.values<float>().begin());
  std::copy(test.labels.begin(), test.labels.end(), labels.values<std::int32_t>().begin());
  const std::size_t layers = model_->model().layers.size();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const LinearTensors parameters = training_->read_layer(layer);
    const Tensor output = host.allocate(DType::f32, {test.rows(), parameters.bias.element_count()});
    stream.launch(op::gemm(output, values, parameters.weights));
    stream.launch(op::add_bias(output, parameters.bias));
    if (layer + 1 < layers) stream.launch(op::relu(output, output));
    values = output;
  }
  const Tensor loss = host.allocate(DType::f32, {1}), correct = host.allocate(DType::f32, {1});
  stream.launch(op::softmax_cross_entropy(
      {.loss = loss, .gradient = {}, .correct = correct, .logits = values, .labels = labels}));
  stream.synchronize();
  return static_cast<double>(correct.values<float>()[0]) / test.rows();
}

}  // namespace tandem
