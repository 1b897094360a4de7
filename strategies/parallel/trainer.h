// Training a stack of linear layers on several devices: the interface of the ways of parallelism that are more than
// replicas of a whole model.
//
// ReLU between the layers, softmax cross entropy of the last one's output, its mean over the global batch, SGD. Every
// way computes the same numbers as one device, but for rounding.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/worker.h"
#include "strategies/parallel/linear.h"

namespace tandem {

struct LinearStack {
  using Values = std::function<double(std::int64_t element)>;

  std::vector<std::int64_t> sizes{};  // features of the input, then outputs of every layer; the last are the classes
  SgdSettings sgd{};
  std::function<Values(int layer)> initial_weights{};  // row-major [inputs, outputs]; biases begin at zero

  int layers() const { return static_cast<int>(sizes.size()) - 1; }
  LinearShape shape(int layer) const {
    return {.inputs = sizes.at(static_cast<std::size_t>(layer)),
            .outputs = sizes.at(static_cast<std::size_t>(layer) + 1)};
  }
};

struct ParallelOptions {
  int data = 1, tensor = 1, pipeline = 1;  // devices along each axis of the mesh
  int micro_batches = 1;                   // a replica's batch goes through the pipeline in so many parts
  std::int64_t batch = 1;                  // rows of every step, of all replicas together
};

// ValueError when the layers do not suffice for the mesh, or the batch for its replicas and micro-batches.
void check_division(const LinearStack& stack, const ParallelOptions& options);

class ParallelTrainer {
 public:
  virtual ~ParallelTrainer() = default;
  // Issues one step on the whole batch: inputs [batch, features] (f32) and labels [batch] (i32) on the worker's CPU.
  // Returns a tensor there (f32) whose elements, over all workers, add up to the loss once the devices have been
  // synchronised.
  virtual Tensor train_step(const Tensor& inputs, const Tensor& labels) = 0;
  virtual int replicas() const = 0;  // parts of the batch that are computed side by side
  // A layer's whole parameters, on the worker's CPU in the order of its compute stream. One worker only.
  virtual LinearTensors read_layer(int layer) = 0;
};

// Fully sharded data parallelism over all devices of the cluster. `options.data` is
// their number. ValueError as of check_division.
std::unique_ptr<ParallelTrainer> make_fully_sharded(Worker& worker, LinearStack stack, const ParallelOptions& options);

// A mesh pipeline x data x tensor over all devices of the cluster. ValueError for another number of devices, and
// as of check_division.
std::unique_ptr<ParallelTrainer> make_mesh_trainer(Worker& worker, LinearStack stack, const ParallelOptions& options);

// Element by element over the workers that train; all of them call it. Blocks. Only where the engine carries values.
std::vector<float> sum_over_workers(Worker& worker, std::vector<float> values);

}  // namespace tandem
