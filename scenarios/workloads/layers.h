// A model given as a table of layers: every layer's matrix products and element-wise work at their true shapes, on
// scratch memory, with gradients reduced in buckets while the backward pass goes on.
//
// The backward pass of a product is two more: the gradient of its weights and of its input (none for the first layer).
// `count` products of one example run as a single one of as many rows: the same flops and, with the weights' share
// added to its cost, the same bytes. Values mean nothing; times, sizes and collectives are those of the model.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/workloads/workload.h"
#include "strategies/replica_context.h"

namespace tandem {

class LayersWorkload final : public Workload {
 public:
  LayersWorkload(const LayersSettings& settings, int global_batch, Strategy& strategy);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& /*report*/, bool /*carries_values*/) override {}
  std::string throughput_unit() const override { return settings_.model.unit + "/s"; }

 private:
  // One replica's memory: operands shared by all layers, the parameters' gradients, and the input of two steps.
  struct Replica {
    std::int64_t batch = 0;
    Tensor left, right, result;  // of products, and the operands of element-wise work
    Tensor gradients;            // all parameters, in the order of the backward pass
    Tensor host_input;
    std::vector<Tensor> input;
    std::vector<Event> input_ready, input_used;
  };
  struct Product {
    std::int64_t m = 0, n = 0, k = 0;
    double extra_bytes = 0;  // of weights that `count` products have each for themselves
    double saved_bytes = 0;  // of an implicit left operand, smaller than m x k
  };
  struct Bucket {
    std::int64_t first = 0, count = 0;  // of the gradients
  };

  Product product_of(const Layer::Gemm& gemm, std::int64_t batch) const;
  void allocate(Replica& replica, Device& device, std::int64_t batch) const;
  void divide_into_buckets();
  void replica_step(Replica& replica, int step);
  void fetch_input(Replica& replica, Device& device, int step) const;
  void forward(Replica& replica, Device& device) const;
  void backward(Replica& replica, ReplicaContext& context) const;
  void product_gradients(const Replica& replica, Device& device, const Layer& layer, bool with_input,
                         std::int64_t gradient_at) const;
  void elementwise(const Replica& replica, Device& device, const Layer& layer, int passes) const;

  LayersSettings settings_;
  int global_batch_;
  Strategy& strategy_;
  DType storage_;  // of tensors; tf32 is stored as f32
  std::shared_ptr<Variable> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<Replica> replicas_;
};

}  // namespace tandem
