// How many devices divide a model in each way, and what else a user chooses about it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strategies/base/strategy_key.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

// The words for orders of passes in scenarios and messages, the usual one first.
const std::vector<std::pair<std::string, PipelineOrder>>& pipeline_orders();
const std::string& name_of(PipelineOrder order);

// How devices that divide the tokens of sequences bring queries and keys together.
enum class ContextExchange : std::uint8_t {
  all_gather,  // each gathers the keys and values of all tokens (Llama 3, arXiv:2407.21783, section 3.3.2)
  ring,        // these go round from neighbour to neighbour (Ring Attention, arXiv:2310.01889)
  all_to_all,  // each gets some heads of all tokens, and gives their results back (Ulysses, arXiv:2309.14509)
};
// The words for them in scenarios, the usual one first.
const std::vector<std::pair<std::string, ContextExchange>>& context_exchanges();
const std::string& name_of(ContextExchange exchange);

// Which devices of a mesh are nearest to each other, named from the nearest to the furthest. Those along context come
// after those along tensor.
enum class AxisOrder : std::uint8_t {
  tensor_data_pipeline,  // replicas of a stage are neighbours
  tensor_pipeline_data,  // stages of a pipeline are neighbours, as with Megatron-LM's --use-tp-pp-dp-mapping
};
// The words for them in scenarios, the usual one first.
const std::vector<std::pair<std::string, AxisOrder>>& axis_orders();
const std::string& name_of(AxisOrder order);

struct ParallelOptions {
  int data = 1, tensor = 1, pipeline = 1;  // devices along each axis of the mesh
  int context = 1;                         // devices that divide the tokens of each sequence of a replica
  AxisOrder axis_order = AxisOrder::tensor_data_pipeline;
  ContextExchange context_exchange = ContextExchange::all_gather;
  int expert = 1;                   // devices of a stage that divide the experts of a layer
  int expert_tensor = 0;            // devices that divide each expert, a divisor of tensor; 0: all of tensor
  int per_worker = 1;               // devices of a worker, whose ranks are neighbours
  int joined = 0;                   // neighbours that need no network among them; 0: all devices
  int micro_batches = 1;            // parts of a replica's batch, which go through the pipeline one by one
  int virtual_stages = 1;           // stages of each device of a pipeline, where the order leaves it open
  std::vector<int> stage_blocks{};  // of each stage, in order: its blocks; empty: equally many
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  // Whether exchanges with experts in a forward pass are hidden by a backward pass, and the other way round.
  bool overlap_experts = false;
  // Whether a shared expert is computed while tokens go to the other experts and come back.
  bool overlap_shared_expert = false;
  std::int64_t batch = 1;  // rows of a step, for all replicas together
  // Whether each tensor-parallel device of a stage sends only its part of a matrix that all of them have, and the
  // devices of the next stage gather the parts; otherwise each sends the whole matrix.
  bool scatter_gather = true;
  // Whether devices with the same parameters divide the optimizer's state and work (ZeRO's first
  // stage), and whether the updated parameters are gathered while the next step begins, not before it.
  bool distributed_optimizer = false, overlap_gather = false;
  // Whether devices with the same parameters keep pieces of them, which are gathered for each use (ZeRO's third stage).
  bool shard_parameters = false;
  int replicate = 1;     // groups of devices with the same parameters, each of which divides what they divide
  StrategyValues own{};  // of the strategy's own keys (StrategyInfo::keys)

  // Whether each device has two stages, those of places `place` from either end of the pipeline, so that the first and
  // the last stage are on one device. Otherwise device d has the stages d, d + pipeline and so on.
  bool ends_meet() const;
  // The ends from which micro-batches enter the pipeline. From two of them: half of the micro-batches from each, and
  // every stage is on two devices, as chunk 0 of one and as chunk 1 of the other.
  int ways() const { return order == PipelineOrder::dual_pipe ? 2 : 1; }
  int chunks() const { return ends_meet() ? 2 : virtual_stages; }  // stages of each device, which take turns on it
  int stages() const { return pipeline * chunks() / ways(); }      // that differ
  int stage_of(int place, int chunk) const;                        // of the device at a place of the pipeline
  int place_of(int stage, int chunk) const;  // of the device with that stage, as its chunk if it is on several
  // Whether each device of a sequence sends keys and values to the next one.
  bool passes_pieces() const { return context > 1 && context_exchange == ContextExchange::ring; }
  // The devices that have equal parts of the keys and values that attention reads.
  int key_parts() const { return context_exchange == ContextExchange::all_to_all ? 1 : context; }
  int micro_batches_of_chunk() const { return micro_batches / ways(); }
  int replicas() const { return data * context * ways(); }  // devices with the same parameters
  // Neighbours along tensor that divide each expert. Where they are fewer than those of other layers, groups of them
  // are among those that divide the experts, and among those with the same.
  int expert_parts() const { return expert_tensor == 0 ? tensor : expert_tensor; }
  // Whether the devices that have the same experts are others than those that have the same other layers.
  bool has_groups_of_experts() const { return expert > 1 || expert_parts() < tensor; }
  // The devices of a stage that have the same part of each of their experts.
  int devices_with_experts() const { return data * context * tensor / expert_parts(); }
  // Returns the place of a device among these, `place` along data x context.
  int place_with_experts(int place, int tensor_place) const { return (place * tensor + tensor_place) / expert_parts(); }
  // The rank of a device. `place` counts data x context, context fastest; devices along context are always next to
  // those along tensor.
  int rank_of(int place, int stage, int tensor_place) const;
  int place_of_rank(int rank) const;
  int stage_of_rank(int rank) const;  // its place along pipeline
  // Returns how many consecutive ranks hold so many consecutive places of one stage, a divisor or a multiple of
  // context.
  int span_of_places(int places) const;
  // Likewise for the devices that divide the same experts.
  int span_of_experts() const;
  std::int64_t devices() const { return std::int64_t{data} * context * tensor * pipeline; }
};

// Throws ValueError for interleaved stages without a pipeline, or with micro-batches that do not go through it in
// rounds.
void check_interleaving(const ParallelOptions& options);
}  // namespace tandem
