// The computation of a stage: one device's parts of some consecutive layers of a model.
//
// Whoever trains a model decides when which part of a layer is computed and what devices exchange. A stage model knows
// how to compute it, and on which tensors. It may keep activations, so that losses and gradients are those of the
// model, or work on memory without meaning, where only times and sizes matter. Layers are counted within the stage.
//
// Threads: the task of the stage's device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device.h"
#include "strategies/model/model.h"
#include "strategies/parallel/layout/layer_division.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

// One pass over a part of a replica's rows of the batch: a micro-batch.
struct Pass {
  int index = 0;            // among those of a step
  std::int64_t first = 0;   // of its examples, in the whole batch
  std::int64_t offset = 0;  // the same, in the device's rows of it
  std::int64_t examples = 1;
  bool is_first = true;  // of those whose gradients are added up
  bool is_last = true;
  // Where some passes leave gradients of weights for later: what this one does.
  PipelineAction::Pass kind = PipelineAction::Pass::backward;
};

// A part of the computation of a layer.
enum class Work : std::uint8_t {
  product,     // of the input and the weights, or the lookup in a table
  operations,  // what follows it
  loss_sums,   // of the exponentials of a device's part of a row, once the row's largest element is known
  loss,        // once the sums are known
  operations_gradient,
  product_again,  // of scores that were not kept
  weight_gradient,
  input_gradient,
  accumulation,  // of gradients to those of earlier passes
  // Where keys of attention go round: what a round made is added to the results of the rounds before, to the gradients
  // of the piece that comes with them, and to those of queries.
  product_sum,
  weight_gradient_sum,
  input_gradient_sum,
  // Where heads of attention are exchanged: what came back is put in the order of the device's tokens.
  results_of_tokens,
  gradients_of_tokens,
};

// What devices exchange for a layer. whole: as much as all of them have. part: what one of them has. Tokens, heads,
// pieces and their gradients: the devices send `part`, and receive `whole`.
enum class Exchange : std::uint8_t {
  input,            // rows of the input: gathered before the product
  input_again,      // the same before the weights' gradients
  output,           // summed; with rows divided, each device gets its rows of the sum
  output_gradient,  // rows, gathered
  input_gradient,   // as `output`
  tokens_to_experts,
  tokens_from_experts,
  gradients_to_experts,
  gradients_from_experts,
  keys,               // or values, of a sequence: gathered before the product of attention
  keys_again,         // the same in the backward pass
  key_gradients,      // of the whole sequence, of which each device gets the sums of its part
  piece,              // of keys or values: from one neighbour to the other, which has it for a round
  piece_and_sums,     // the same with the sums of gradients of the piece before
  queries_to_heads,   // heads of all tokens for the tokens of all heads
  keys_to_heads,      // or values
  results_to_tokens,  // back
  result_gradients_to_heads,
  query_gradients_to_tokens,
  key_gradients_to_tokens,
  loss_maxima,   // of rows of logits: the largest
  loss_sums,     // summed
  loss_targets,  // summed: logits of the labels
};
struct Exchanged {
  Tensor whole{}, part{};
};

// Rows of a batch: what the first stage computes on, and what the last one compares its results with. Empty where a
// stage needs none.
struct Batch {
  Tensor inputs{}, labels{};
};

// The flat tensors of a layer's parameters and of their gradients. Either may be empty where a stage model works on
// memory without meaning.
struct LayerTensors {
  Tensor parameters{}, gradients{};
  Tensor shared_parameters{}, shared_gradients{};  // of a layer with shared weights: the table's
};

class StageModel {
 public:
  virtual ~StageModel() = default;

  // The device's rows of a batch, on the device. Called before the passes of a step.
  virtual void begin_step(const Batch& batch) = 0;
  // Returns each pass's part of the loss, on the device; empty where the stage knows none.
  virtual Tensor losses() const = 0;

  // `input` is what the stage before sent; empty in the first stage.
  virtual void begin_forward(const Pass& pass, const Tensor& input) = 0;
  // Returns what the next stage gets, or an empty tensor if it may get anything of that size.
  virtual Tensor output(const Pass& pass) = 0;
  // `of_output` is what the next stage sent; empty in the last stage.
  virtual void begin_backward(const Pass& pass, const Tensor& of_output) = 0;
  virtual Tensor input_gradient(const Pass& pass) = 0;  // for the stage before; may be empty as output()

  // Launches on the device's compute stream.
  virtual void launch(Work work, std::size_t layer, const Pass& pass, const LayerTensors& tensors) = 0;
  // Asked just before the exchange is issued.
  virtual Exchanged operands(Exchange exchange, std::size_t layer, const Pass& pass) = 0;
  // Returns how many tensors of each update()d one's size the caller keeps for it from step to step, of zeros at first.
  virtual int moments() const = 0;
  // Updates parameters, flat, by their gradients, on the compute stream of their device. Steps count from 0.
  virtual void update(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
                      std::int64_t step) = 0;
  // Called after updates, with the number of parameters and the memory that the optimizer's other traffic goes to
  // (empty: any).
  virtual void finish_update(std::int64_t parameters, const Tensor& over) = 0;
  // Adds the gradients of a pass to those of earlier ones, piece by piece. `parameters`: how many these are.
  virtual void accumulate(std::int64_t parameters, std::span<const Tensor> sums, std::span<const Tensor> parts) = 0;
};

// What a stage model is made for.
struct StagePart {
  std::size_t first = 0, end = 0;  // layers of the model
  LayerDivision division{};
  int tensor_part = 0, context_part = 0, expert_part = 0;  // the device's places
  std::int64_t examples = 1;                               // of the largest pass
  int passes = 1;                                          // of a step
  int live = 1;                                            // passes between forward and backward at the same time
  int owing = 0;                                           // owing_micro_batches()
  bool gathers_each_pass = false;                          // whether parameters arrive anew for each pass
  // Whether gradients of weights that stages share are cleared before each step; otherwise the first pass writes them.
  bool has_cleared_table = false;
};

}  // namespace tandem
