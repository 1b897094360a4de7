// One worker's part of the training of a model that a strategy divides among the devices of the job.
//
// Used within the worker's program. Threads: one task.
#pragma once

#include <memory>
#include <vector>

#include "engine/worker.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/parallel/stages/linear.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

class DividedTraining {
 public:
  virtual ~DividedTraining() = default;

  // Issues one step; does not wait for it. Steps count from 0.
  virtual void run_step(int step) = 0;
  // Issues so many forward passes over batches of the size of those of training, whose activations nobody keeps, and
  // the sum of their results over all devices; does not wait for them. Called between steps, after step
  // `step`, and only where Division::evaluates().
  virtual void evaluate(int step, int passes);
  virtual int replicas() const = 0;  // into how many parts, computed side by side, the batch is divided
  // The parameters of the device of this worker that has most of them.
  virtual std::int64_t most_parameters() const = 0;
  // Returns a tensor on the worker's CPU for each step so far. Once the devices have been synchronised, the
  // elements of all workers' tensors of a step add up to its loss. Nothing where the model knows no loss.
  const std::vector<Tensor>& losses() const { return losses_; }
  // Returns the whole parameters of a dense layer on the worker's CPU, in the order of its compute stream. For runs of
  // one worker.
  virtual LinearTensors read_layer(std::size_t layer) = 0;

 protected:
  std::vector<Tensor> losses_{};
};

// Issues the sum, over all devices that train, of what an evaluation found out on each: kEvaluationSums numbers.
inline constexpr std::int64_t kEvaluationSums = 2;
void sum_evaluation(Worker& worker);

// Adds up the values, element by element, over the workers that train, all of which call it. Blocks the caller. Needs
// an engine that carries values.
std::vector<float> sum_over_workers(Worker& worker, std::vector<float> values);

}  // namespace tandem
