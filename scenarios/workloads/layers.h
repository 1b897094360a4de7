// A model given as a table of layers: the matrix products and element-wise work of every layer with the model's shapes,
// on scratch memory, and gradients that are reduced in buckets while the backward pass goes on.
//
// The backward pass of a product is two more products: the gradients of its weights and of its input (not for the first
// layer). Values mean nothing; times, sizes and collectives are those of the model. Layers whose gradients are reduced
// together keep their parameters in one variable, which is read before the first of these layers.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "scenarios/workloads/layer_ops.h"
#include "scenarios/workloads/workload.h"
#include "strategies/variables/gradient_updates.h"

namespace tandem {

class LayersWorkload final : public Workload {
 public:
  LayersWorkload(const LayersSettings& settings, int global_batch, Strategy& strategy);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& /*report*/, bool /*carries_values*/) override {}
  std::string throughput_unit() const override { return settings_.model.unit + "/s"; }

 private:
  // What a step launches for each layer, in the model's order.
  struct StepKernels {
    std::vector<std::vector<LayerKernel>> forward, backward;
  };
  // One of the passes over parts of the batch. Gradients are reduced after the last of them.
  struct Pass {
    std::int64_t batch = 0;
    const StepKernels* kernels = nullptr;
    bool is_first = true, is_last = true;
  };
  // The memory of one replica: operands that all layers share, the gradients, and the input of two steps.
  struct Replica {
    std::int64_t batch = 0;
    std::vector<Pass> passes;
    Scratch scratch;
    Tensor gradients;  // all parameters, in the order of the backward pass
    Tensor host_input;
    std::vector<Tensor> input;
    std::vector<Event> input_ready, input_used;
  };
  // The gradients of consecutive layers that are reduced together.
  struct Bucket {
    std::int64_t first = 0, count = 0;  // of the gradients
    std::size_t first_layer = 0;        // in forward order, of those with parameters
    std::shared_ptr<Variable> parameters{};
    std::int64_t end() const { return first + count; }
  };

  void allocate(Replica& replica, Device& device, std::int64_t batch) const;
  void divide_into_buckets();
  void create_variables();
  void replica_step(Replica& replica, int step);
  void fetch_input(Replica& replica, Device& device, int step) const;
  std::vector<Pass> passes_of(std::int64_t batch);
  void forward(const Replica& replica, const Pass& pass, Device& device) const;
  void backward(const Replica& replica, const Pass& pass, Device& device);
  void layer_backward(const Replica& replica, const Pass& pass, std::size_t layer, std::int64_t first_gradient,
                      Stream& stream) const;
  void update(Variable& variable, const Tensor& gradient) const;
  const StepKernels& kernels_for(std::int64_t batch);

  LayersSettings settings_;
  int global_batch_;
  Strategy& strategy_;
  DType storage_;                // of activations; tf32 is stored as f32
  DType parameter_type_;         // of parameters and gradients
  std::vector<Bucket> buckets_;  // in the order of the backward pass
  GradientUpdates updates_;
  std::map<std::int64_t, StepKernels> kernels_;  // by the examples of a replica
  std::vector<Replica> replicas_;
};

}  // namespace tandem
