// One pipeline stage of a model on one device of a mesh: the device's parts of some consecutive layers, on its rows of
// the batch, one micro-batch after another. Decides when what is computed, exchanged, reduced and updated; a StageModel
// computes.
//
// Threads: one task per step and device. The devices of a group call the same collectives in the same order.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/parallel/layout/mesh_layout.h"
#include "strategies/parallel/layout/range.h"
#include "strategies/parallel/layout/shared_experts.h"
#include "strategies/parallel/stages/activation_offload.h"
#include "strategies/parallel/stages/layer_exchanges.h"
#include "strategies/parallel/stages/linear.h"
#include "strategies/parallel/stages/stage_channels.h"
#include "strategies/parallel/stages/stage_exchange.h"
#include "strategies/parallel/stages/stage_parameters.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

struct StageJoint;

class Stage final {
 public:
  // How far a pass has been issued.
  class Progress {
   private:
    friend class Stage;
    Pass pass_{};
    bool in_parts_ = false, is_begun_ = false;
    bool keeps_nothing_ = false;  // of activations
    std::size_t layers_ = 0;      // that are done, in the order of the pass
    int exchanges_ = 0;           // with experts, of the current layer, that are done: 0, 1 or 2
    Event exchanged_{};           // the last of them
  };

  // `layers` are those of the device's stage number `chunk`. `ends` is the group of the first and the last stage where
  // these have copies of the same embedding, else null. `actions` are the passes of the device, among them those of
  // this stage.
  Stage(const MeshMember& member, const TrainableModel& model, const ParallelOptions& options, Range layers,
        GroupCollectives* ends, std::span<const PipelineAction> actions, int chunk);

  // Lets a stage hand its output to the next one on the same device, and that one the gradients back. Both models have
  // values.
  static void join(Stage& before, Stage& after);
  // Lets this stage read a table of an earlier one on the same device, and add to its gradients. Called before part().
  void share_table_of(Stage& other);

  StagePart part() const;
  // Called before the first step, with what was made for part(). `host` is the worker's CPU, on which first values are
  // computed.
  void use(std::unique_ptr<StageModel> computation, Device& host);
  Tensor losses() const { return computation_->losses(); }
  std::int64_t parameters() const { return parameters_->kept_of(tied_ + owned_); }
  int number() const { return stage_; }  // in the pipeline
  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == options_.stages(); }

  // Copies the device's part of the parameters of a dense layer, counted in the model, to its place in the whole ones
  // on the CPU of `worker`. Does nothing for layers of other stages.
  void copy_layer(std::size_t layer, const LinearTensors& whole, Worker& worker) const;

  void begin_step(const Batch& batch);  // called before the passes
  // Between steps: before the forward passes over a batch, and each of them. Nothing is kept for a backward pass.
  void begin_evaluation(const Batch& batch) { computation_->begin_step(batch); }
  void evaluate(const PipelineAction& action);
  // Issues the work of a pass; with `in_parts` up to its next exchange with experts, which then runs beside what is
  // issued until the next call. Returns whether there is more.
  Progress begin(const PipelineAction& action, bool in_parts) const;
  bool go_on(Progress& progress);
  // Called after the passes: first reduce() of all stages of the device, then update() of all.
  void reduce();
  void update();

 private:
  const std::vector<Layer>& all_layers() const { return model_.model().layers; }
  Stream& compute() const { return device_.compute_stream(); }
  Pass pass(int micro_batch) const;
  Tensor receive_input(const Pass& pass);
  void send_output(const Pass& pass);
  void release_input();
  Tensor receive_gradient(const Pass& pass);
  void send_gradient(const Pass& pass);
  const LayerExchanges& exchanges(std::size_t layer, const Pass& pass) const;
  LayerTensors tensors(std::size_t layer, const Pass& pass = {}) const;
  void make_parts();
  std::optional<std::size_t> table() const;
  std::optional<std::size_t> shared_table() const;
  std::pair<const StageParameters*, std::int64_t> shared_parameters() const;
  void make_exchanges(std::int64_t examples);
  void set_first_values(Device& host);
  void open_offload(Device& host);
  void open_channels();
  void wait_for_shared_table() const;
  void launch(Work work, std::size_t layer, const Pass& pass) const;
  void exchange(Exchange exchange, std::size_t layer, const Pass& pass, Stream& stream) const;
  bool overlaps_products() const;
  void exchange_beside_products(Exchange exchange, std::size_t layer, const Pass& pass) const;
  void wait_for_exchanges() const;
  bool exchange_with_experts(Exchange exchange, std::int64_t elements, std::size_t layer, Progress& progress);
  bool is_beside_exchange(std::size_t layer) const;
  Event begin_exchange(Exchange exchange, std::size_t layer, const Pass& pass) const;
  void forward_beside_exchange(Exchange exchange, std::size_t layer, const Pass& pass, bool is_again) const;
  void backward_beside_exchange(Exchange exchange, std::size_t layer, const Progress& progress);
  void exchange_again(Exchange exchange, std::int64_t elements, std::size_t layer, bool is_beside, Progress& progress);
  bool forward(Progress& progress);
  bool forward_of_layers(Progress& progress, std::size_t end);
  bool backward_of_layers(Progress& progress, std::size_t first);
  void weights_of_layers(const Pass& pass, std::size_t first, std::size_t end);
  bool repeats(const Progress& progress) const;
  void begin_forward_of(std::size_t layer, const Pass& pass) const;
  bool backward(Progress& progress);
  void weights(const Progress& progress);
  bool starts_exchange(Exchange exchange, std::int64_t elements, std::size_t layer, Progress& progress) const;
  void end_exchange(Progress& progress) const;
  void begin_backward(const Pass& pass);
  void begin_gradients(const Pass& pass);
  void end_backward(const Pass& pass);
  Pass of_gradients(const Pass& pass) const;
  void begin_backward_of(std::size_t layer, Progress& progress);
  void add_gradients_of_layer(std::size_t layer, const Pass& of_gradients);
  void reduce_gradients_of_layer(std::size_t layer, const Pass& of_gradients);
  bool reduces_in(const Pass& pass) const;
  void layer_forward(std::size_t layer, const Pass& pass) const;
  bool has_own_attention(std::size_t layer, const Pass& pass) const;
  void attention_of_heads(std::size_t layer, const Pass& pass) const;
  void attention_in_rounds(std::size_t layer, const Pass& pass) const;
  void gradients_of_heads(std::size_t layer, const Pass& pass) const;
  void gradients_in_rounds(std::size_t layer, const Pass& pass) const;
  Event pass_on(const Exchanged& tensors, int step) const;
  void gather_pieces(Exchange exchange, std::size_t layer, const Pass& pass) const;
  void sum_pieces(std::size_t layer, const Pass& pass) const;
  void exchange_loss(std::size_t layer, const Pass& pass) const;
  void gradients_of_layer(std::size_t layer, const Pass& pass) const;
  bool is_deferrable(std::size_t layer) const;
  bool is_deferred(std::size_t layer, const Pass& pass) const;
  void gradients_of_weights(std::size_t layer, const Pass& pass) const;
  void gradients_beside_exchanges(std::size_t layer, const Pass& pass) const;
  void gradients_of_attention(std::size_t layer, const Pass& pass) const;
  void compute_again_before(std::size_t layer, Progress& progress);
  GroupCollectives* devices_that_divide(std::size_t layer) const;
  // Gradients of parameters that the devices of a group sum after the passes.
  struct RowSums {
    std::int64_t count = 0;
    Tensor packed{};  // with real values
  };
  RowSums& row_sums_of(std::size_t layer);
  void reduce_gradients_of_rows(const RowSums& sums, GroupCollectives* group);
  void sum_gradients_of_rows(std::size_t layer) const;

  Device& device_;
  const TrainableModel& model_;
  const TrainingSettings& settings_;
  ParallelOptions options_;
  MeshMember member_;
  LayerDivision division_;
  int chunk_, stage_;
  Range layers_;  // of the model
  GroupCollectives* ends_;
  int live_;                  // micro-batches between their first and their last pass at the same time
  int owing_;                 // owing_micro_batches()
  Range rows_;                // of the batch
  std::vector<Layer> parts_;  // of the layers, that the device has
  std::optional<Recomputation> recomputation_{};
  std::map<std::int64_t, std::vector<LayerExchanges>> exchanges_;  // by examples of a pass
  std::vector<bool> of_experts_;                                   // layers of experts that have groups of their own
  // Shared experts that are computed beside exchanges: by each of their layers, and by the first and the last layer of
  // the experts that these are beside.
  std::map<std::size_t, SharedExpert> shared_experts_{};
  std::int64_t owned_ = 0;   // parameters of the layers
  std::int64_t tied_ = 0;    // parameters of the last stage's copy of the embedding, before the others
  std::int64_t shared_ = 0;  // elements that the two ends sum
  // Parameters whose gradients the devices that divide a layer sum after the passes: the last ones of each layer, all
  // of them, and those of experts that fewer devices divide.
  std::vector<std::int64_t> own_rows_;
  RowSums row_sums_{}, expert_row_sums_{};
  std::unique_ptr<StageParameters> parameters_{};
  StageChannels channels_{};
  std::shared_ptr<StageJoint> before_{}, after_{};  // where that stage is on this device
  const Stage* table_of_ = nullptr;                 // an earlier stage on this device whose table this one reads
  bool lends_table_ = false;                        // to a later one, which adds to its gradients
  std::unique_ptr<StageModel> computation_{};
  std::optional<ActivationOffload> offload_{};
  // The layers of a block, or neighbours without one: what is repeated as one in passes that are the same.
  struct RepeatedLayers {
    std::size_t first = 0, end = 0;
  };
  std::vector<RepeatedLayers> repeated_layers_{};
  std::map<std::pair<PipelineAction::Pass, std::size_t>, RepeatedWork> repeated_{};  // by the first layer
};

}  // namespace tandem
