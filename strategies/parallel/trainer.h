// Trains a stack of linear layers on several devices: the interface of all kinds of parallelism that do more than
// replicate a whole model.
//
// The layers are separated by ReLU. The loss is the mean, over the global batch, of the softmax cross entropy of the
// last layer's output; it is minimised by SGD. Every kind of parallelism computes the same numbers as one device, up to
// rounding.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/worker.h"
#include "strategies/parallel/linear.h"
#include "strategies/strategy_key.h"

namespace tandem {

struct LinearStack {
  using Values = std::function<double(std::int64_t element)>;

  std::vector<std::int64_t> sizes{};  // the input's features, then each layer's outputs; the last are the classes
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
  int context = 1;                         // devices that divide the tokens of each sequence of a replica
  int expert = 1;                          // devices along data x context that divide the experts of a layer
  int micro_batches = 1;                   // parts of a replica's batch, which go through the pipeline one by one
  int virtual_stages = 1;                  // stages of each device of a pipeline, which take turns on it
  std::int64_t batch = 1;                  // rows of a step, for all replicas together
  // Whether each tensor-parallel device of a stage sends only its part of a matrix that all of them have, and the
  // devices of the next stage gather the parts; otherwise each sends the whole matrix.
  bool scatter_gather = true;
  // Tables of layers: whether devices with the same parameters divide the optimizer's state and work (ZeRO's first
  // stage), and whether the updated parameters are gathered while the next step begins, not before it.
  bool distributed_optimizer = false, overlap_gather = false;
  StrategyValues own{};  // of the strategy's own keys (StrategyInfo::keys)

  int stages() const { return pipeline * virtual_stages; }
  std::int64_t devices() const { return std::int64_t{data} * context * tensor * pipeline; }
};

// Throws ValueError for interleaved stages without a pipeline, or with micro-batches that do not go through it in
// rounds.
void check_interleaving(const ParallelOptions& options);
// Throws ValueError as check_interleaving() does, and for too few layers for the mesh or too few rows for its replicas
// and micro-batches.
void check_division(const LinearStack& stack, const ParallelOptions& options);

class ParallelTrainer {
 public:
  virtual ~ParallelTrainer() = default;
  // Issues one step on the whole batch: inputs [batch, features] (f32) and labels [batch] (i32) on the worker's CPU.
  // Returns an f32 tensor on that CPU. Once the devices have been synchronised, the elements of all workers' tensors
  // add up to the loss.
  virtual Tensor train_step(const Tensor& inputs, const Tensor& labels) = 0;
  virtual int replicas() const = 0;  // into how many parts, computed side by side, the batch is divided
  // A layer's whole parameters, on the worker's CPU, in the order of its compute stream. For runs of one worker.
  virtual LinearTensors read_layer(int layer) = 0;
};

// Fully sharded data parallelism over all devices of the cluster, whose number is `options.data`. ValueError as
// check_division().
std::unique_ptr<ParallelTrainer> make_fully_sharded(Worker& worker, LinearStack stack, const ParallelOptions& options);

// A mesh pipeline x data x tensor over all devices of the cluster. ValueError for another number of devices, and as
// check_division().
std::unique_ptr<ParallelTrainer> make_mesh_trainer(Worker& worker, LinearStack stack, const ParallelOptions& options);

// Adds up the values, element by element, over the workers that train, all of which call it. Blocks the caller. Needs
// an engine that carries values.
std::vector<float> sum_over_workers(Worker& worker, std::vector<float> values);

}  // namespace tandem
