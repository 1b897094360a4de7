// A model given as a table of layers, fully sharded: the work of LayersWorkload with parameters that are gathered
// before they are used, in units of consecutive layers that have at least bucket_bytes.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "scenarios/workloads/layer_ops.h"
#include "scenarios/workloads/workload.h"
#include "strategies/parallel/device_mesh.h"
#include "strategies/parallel/sharded_parameters.h"
#include "strategies/parallel/trainer.h"

namespace tandem {

class ShardedLayersWorkload final : public Workload {
 public:
  ShardedLayersWorkload(const LayersSettings& settings, Worker& worker, const ParallelOptions& options);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return settings_.model.unit + "/s"; }

 private:
  // The place of a layer's parameters.
  struct Place {
    int unit = 0;
    std::int64_t first = 0;
  };
  struct Replica {
    Device* device = nullptr;
    std::int64_t batch = 0;
    std::unique_ptr<ShardedParameters> parameters{};
    Scratch scratch{};
    Tensor host_input{};
    std::array<Tensor, 2> input{};  // of this step and the next one
    std::array<Event, 2> input_ready{}, input_used{};
  };

  void divide_into_units();
  Replica make_replica(std::size_t index);
  void fetch_input(Replica& replica, int step) const;
  void step(Replica& replica, int step) const;
  void forward(const Replica& replica, std::int64_t batch) const;
  void backward(const Replica& replica, std::int64_t batch) const;
  void layer_backward(const Replica& replica, std::int64_t batch, std::size_t layer, const Scratch& scratch,
                      const Tensor& gradients) const;
  // Returns the scratch memory for a layer's kernels, with the layer's parameters in the unit as the right operand if
  // it has weights.
  Scratch with_weights(const Replica& replica, std::size_t layer, const Tensor& unit) const;
  LayerKernels kernels_for(std::int64_t batch) const;

  LayersSettings settings_;
  Worker& worker_;
  ParallelOptions options_;
  DType storage_;              // of tensors; tf32 is stored as f32
  std::vector<Place> places_;  // of each layer
  std::vector<ShardedParameters::Unit> units_;
  std::size_t first_product_ = 0;  // the first layer with a product, whose input needs no gradient
  std::unique_ptr<DeviceMesh> mesh_;
  std::unique_ptr<GroupCollectives> group_;
  std::vector<Replica> replicas_;
};

}  // namespace tandem
