#include "scenarios/workloads/evaluation.h"

#include <optional>

#include "scenarios/workloads/mlp_evaluation.h"
#include "scenarios/workloads/trainable.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/parallel/layout/range.h"
#include "strategies/parallel/stages/lone_layer.h"
#include "strategies/parallel/stages/step_input.h"

namespace tandem {
namespace {

// Divides batches among the devices of a worker, each of which has a copy of all variables.
class LocalEvaluator : public Evaluator {
 public:
  explicit LocalEvaluator(Worker& worker) : worker_(worker) {}

  Tensor evaluate(const std::vector<Tensor>& variables) final {
    bring(variables);
    const auto count = static_cast<int>(worker_.devices().size());
    std::vector<Tensor> sums(static_cast<std::size_t>(count));
    worker_.tasks().run_concurrently(count, [&](int i) { sums[static_cast<std::size_t>(i)] = evaluate_on(i); });
    return added_up(sums);
  }

 protected:
  virtual Tensor run(Device& device, int index, const std::vector<Tensor>& variables) = 0;
  Worker& worker() const { return worker_; }
  Device& device(int index) const { return *worker_.devices()[static_cast<std::size_t>(index)]; }
  int devices() const { return static_cast<int>(worker_.devices().size()); }

 private:
  // Copies the variables to the worker's CPU, over the network where they are on another machine.
  void bring(const std::vector<Tensor>& variables) {
    Device& host = worker_.cpu();
    if (here_.empty()) {
      for (const Tensor& variable : variables) here_.push_back(host.allocate(variable.dtype(), variable.shape()));
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      host.compute_stream().copy(here_[i], variables[i], Category::communication);
    }
    host.synchronize();
  }

  Tensor evaluate_on(int index) {
    Device& device = this->device(index);
    std::vector<Tensor> mine = here_;
    for (Tensor& variable : mine) {
      if (&variable.device() == &device) continue;
      const Tensor copy = device.allocate(variable.dtype(), variable.shape());
      device.compute_stream().copy(copy, variable, Category::input);
      variable = copy;
    }
    return run(device, index, mine);
  }

  Tensor added_up(const std::vector<Tensor>& sums) {
    Device& host = worker_.cpu();
    Tensor all = host.allocate(DType::f32, {kEvaluationSums});
    host.compute_stream().launch(op::fill(all, 0));
    for (const Tensor& one : sums) {
      const Tensor here = host.allocate(DType::f32, {kEvaluationSums});
      host.compute_stream().wait(one.device().compute_stream().record());
      host.compute_stream().copy(here, one, Category::other);
      host.compute_stream().launch(op::scale_add(all, here, 1, 1));
    }
    for (Device* device : worker_.devices()) device->synchronize();
    host.synchronize();
    return all;
  }

  Worker& worker_;
  std::vector<Tensor> here_;
};

class MlpEvaluator final : public LocalEvaluator {
 public:
  MlpEvaluator(const MlpSettings& mlp, const EvaluationSettings& settings, Worker& worker)
      : LocalEvaluator(worker), evaluation_(split_rows(*mlp.rows).test, settings) {}

  std::int64_t examples() const override { return evaluation_.examples(); }

 private:
  Tensor run(Device& device, int index, const std::vector<Tensor>& variables) override {
    std::vector<MlpParameters> parameters;
    for (std::size_t i = 0; i + 1 < variables.size(); i += 2) parameters.push_back({variables[i], variables[i + 1]});
    return evaluation_.run(device, worker().cpu(), parameters, index, devices());
  }

  MlpEvaluation evaluation_;
};

// The forward passes of a table of layers; values mean nothing.
class LayersEvaluator final : public LocalEvaluator {
 public:
  LayersEvaluator(std::unique_ptr<TrainableModel> model, const EvaluationSettings& settings, Worker& worker)
      : LocalEvaluator(worker), model_(std::move(model)), passes_(settings.passes) {
    const std::vector<std::int64_t> shares = rebatch(settings.batch, devices());
    std::int64_t first = 0;
    for (int i = 0; i < devices(); ++i) {
      const std::int64_t examples = shares[static_cast<std::size_t>(i)];
      parts_.push_back(make_part(device(i), {.first = first, .count = examples}));
      first += examples;
    }
  }

  std::int64_t examples() const override { return 0; }

 private:
  struct Part {
    Pass pass{};
    Batch host{};
    std::unique_ptr<StageModel> computation{};
    std::optional<StepInput> input{};
  };

  Part make_part(Device& device, const Range& rows) {
    Part part{.pass = {.first = rows.first, .examples = rows.count}};
    const std::vector<StagePart> stages{{.end = model_->model().layers.size(), .examples = rows.count}};
    part.computation = std::move(model_->make_stages(device, worker().cpu(), stages).front());
    part.host = model_->host_batch(
        {.first = rows.first, .examples = rows.count, .has_inputs = true, .has_labels = true}, worker().cpu());
    part.input.emplace(device, part.host);
    return part;
  }

  Tensor run(Device& device, int index, const std::vector<Tensor>& /*variables*/) override {
    Part& part = parts_[static_cast<std::size_t>(index)];
    part.input->fetch(0, part.host);
    for (int pass = 0; pass < passes_; ++pass) {
      part.computation->begin_step(part.input->arrive(pass));
      if (pass + 1 < passes_) part.input->fetch(pass + 1, part.host);
      part.computation->begin_forward(part.pass, {});
      for (std::size_t i = 0; i < model_->model().layers.size(); ++i)
        compute_forward(*part.computation, i, part.pass, {});
      part.input->release(pass);
    }
    Tensor sums = device.allocate(DType::f32, {kEvaluationSums});
    device.compute_stream().launch(op::fill(sums, 0));
    return sums;
  }

  std::unique_ptr<TrainableModel> model_;
  int passes_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Evaluator> make_evaluator(const WorkloadSettings& workload, const EvaluationSettings& settings,
                                          Worker& worker) {
  if (const auto* mlp = std::get_if<MlpSettings>(&workload.kind)) {
    return std::make_unique<MlpEvaluator>(*mlp, settings, worker);
  }
  return std::make_unique<LayersEvaluator>(trainable_model(workload, worker), settings, worker);
}

}  // namespace tandem
