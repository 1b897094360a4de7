#include "strategies/parallel/mesh_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/base/errors.h"
#include "strategies/parallel/layout/gradient_buckets.h"
#include "strategies/parallel/layout/layer_division.h"
#include "strategies/parallel/layout/nearest_sizes.h"
#include "strategies/parallel/layout/range.h"
#include "strategies/parallel/layout/shared_experts.h"
#include "strategies/parallel/layout/zero_bubble_schedule.h"
#include "strategies/parallel/offload_problem.h"

namespace tandem {
namespace {

std::optional<DivisionProblem> problem_at(std::string path, std::optional<std::string> message) {
  if (!message) return std::nullopt;
  return DivisionProblem{std::move(path), std::move(*message)};
}

std::optional<DivisionProblem> interleaving_problem(const ParallelOptions& options) {
  try {
    check_interleaving(options);
  } catch (const ValueError& error) {
    return DivisionProblem{options.pipeline > 1 ? "strategy.micro_batches" : "strategy.virtual_stages", error.what()};
  }
  return std::nullopt;
}

std::optional<DivisionProblem> two_ways_problem(const ParallelOptions& options, std::string_view name) {
  const int devices = options.pipeline, passes = options.micro_batches, least = 2 * devices;
  if (options.ways() > 1 && devices % 2 != 0) {
    return DivisionProblem{"strategy.pipeline", fmt::format("{} needs an even number of devices", name)};
  }
  if (passes >= least && passes % options.ways() == 0) return std::nullopt;
  return DivisionProblem{
      "strategy.micro_batches",
      fmt::format("{} on {} devices needs at least {} micro-batches{}", name, devices, least,
                  options.ways() > 1 ? ", an even number of them, because half of them enter from each end" : "")};
}

std::optional<DivisionProblem> order_problem(const DivisionRequest& request) {
  const ParallelOptions& options = request.options;
  if (options.order == PipelineOrder::one_forward_one_backward) return std::nullopt;
  const std::string& name = name_of(options.order);
  const bool has_own_stages = options.ends_meet() || options.order == PipelineOrder::zero_bubble_h2;
  const char* const problem = options.pipeline == 1         ? "{} is for a pipeline of at least two devices"
                              : !has_own_stages             ? nullptr
                              : options.virtual_stages == 1 ? nullptr
                              : options.ends_meet() ? "{} has two stages on each device; leave out virtual_stages"
                                                    : "{} has one stage on each device; leave out virtual_stages";
  const auto at_schedule = [&](std::string_view text) {
    return DivisionProblem{"strategy.schedule", fmt::format(fmt::runtime(text), name)};
  };
  if (problem != nullptr) return at_schedule(problem);
  const bool is_dual_pipe = options.order == PipelineOrder::dual_pipe || options.order == PipelineOrder::dual_pipe_v;
  return is_dual_pipe ? two_ways_problem(options, name) : std::nullopt;
}

// Passes that take turns use parameters and gradients of two layers at a time.
std::optional<DivisionProblem> overlap_problem(const ParallelOptions& options) {
  if (!options.overlap_experts) return std::nullopt;
  const bool is_usual = options.order == PipelineOrder::one_forward_one_backward;
  const char* const problem = options.expert == 1          ? "nothing is exchanged without devices along expert"
                              : options.shard_parameters   ? "is for parameters that are whole"
                              : options.micro_batches == 1 ? "needs at least two micro-batches, whose passes take turns"
                              : is_usual                   ? nullptr
                                         : "is for the schedule 1f1b; dualpipe and dualpipe_v overlap by themselves";
  return problem == nullptr ? std::nullopt : std::optional(DivisionProblem{"strategy.overlap_experts", problem});
}

// Fewer devices than divide other layers send tokens of their own to experts.
std::optional<DivisionProblem> expert_tensor_problem(const DivisionRequest& request) {
  const ParallelOptions& options = request.options;
  const int parts = options.expert_parts();
  if (parts == options.tensor) return std::nullopt;
  const auto is_problem = [](std::string text) { return DivisionProblem{"strategy.expert_tensor", std::move(text)}; };
  if (options.tensor % parts != 0) {
    return is_problem(fmt::format("{} devices that divide each expert do not divide the {} along tensor; {}", parts,
                                  options.tensor, nearest_divisors(options.tensor, parts)));
  }
  if (std::ranges::none_of(request.model.layers, has_experts)) return std::nullopt;
  if (!request.settings.sequence_parallel) {
    return is_problem(fmt::format(
        "{} needs workload.sequence_parallel, with which devices along tensor have tokens of their own for experts",
        parts));
  }
  if (parts > 1) return std::nullopt;
  const auto is_divided = [](const Layer& layer) { return has_experts(layer) && !layer.is_whole; };
  TANDEM_REQUIRE(std::ranges::none_of(request.model.layers, is_divided), "a model without keep_experts_whole()");
  return std::nullopt;
}

std::string tensor_text(const ParallelOptions& options) {
  const int parts = options.expert_parts();
  if (parts == options.tensor) return "";
  return fmt::format(" x tensor {}{}", options.tensor, parts > 1 ? fmt::format(" / expert_tensor {}", parts) : "");
}

std::optional<DivisionProblem> experts_problem(const DivisionRequest& request) {
  const auto& [model, settings, options] = request;
  const int devices = options.devices_with_experts();
  if (devices % options.expert != 0) {
    return DivisionProblem{
        "strategy.expert",
        fmt::format("{} devices that divide the experts do not divide the {} of data {} x context {}{}; {}",
                    options.expert, devices, options.data, options.context, tensor_text(options),
                    nearest_divisors(devices, options.expert))};
  }
  return problem_at("strategy.expert", expert_problem(model, options.expert));
}

std::optional<DivisionProblem> sharding_problem(const Model& model, const ParallelOptions& options) {
  const std::int64_t devices = options.replicas();
  if (devices % options.replicate != 0) {
    return DivisionProblem{
        "strategy.replicate",
        fmt::format("{} groups do not divide the {} devices of data {} x context {}{}; {}", options.replicate, devices,
                    options.data, options.context, options.ways() > 1 ? " x 2 ends" : "",
                    nearest_divisors(devices, options.replicate))};
  }
  if (options.replicate > 1 && !options.distributed_optimizer && !options.shard_parameters) {
    return DivisionProblem{"strategy.replicate",
                           "is for what is divided among devices: shard_parameters or distributed_optimizer"};
  }
  if (!options.shard_parameters) return std::nullopt;
  if (model.frozen_parameters() > 0) {
    return DivisionProblem{"strategy.shard_parameters",
                           "is for models all of whose parameters learn; fully_sharded divides frozen ones, too"};
  }
  if (options.distributed_optimizer) {
    return DivisionProblem{"strategy.distributed_optimizer", "is part of shard_parameters, which divides more"};
  }
  const bool shares_weights = std::ranges::any_of(model.layers, &Layer::shared_weights);
  if (options.pipeline == 1 || !shares_weights) return std::nullopt;
  return DivisionProblem{"strategy.shard_parameters",
                         fmt::format("the first and the last stage of model '{}' have the same table; pieces of it "
                                     "are for one stage, or for models without shared weights",
                                     model.name)};
}

// A batch of a model that divides unevenly needs an example for each pass; that of others divides evenly.
std::optional<DivisionProblem> batch_problem(const Model& model, const ParallelOptions& options) {
  if (model.divides_unevenly) {
    if (options.batch / options.data >= options.micro_batches) return std::nullopt;
    return DivisionProblem{"strategy",
                           fmt::format("a batch of {} leaves some of {} replicas x {} micro-batches without an example",
                                       options.batch, options.data, options.micro_batches)};
  }
  if (options.batch % options.data != 0) {
    return DivisionProblem{
        "strategy.data", fmt::format("a batch of {} does not divide among {} replicas; {}", options.batch, options.data,
                                     nearest_multiples(options.data, options.batch))};
  }
  if (options.batch / options.data % options.micro_batches == 0) return std::nullopt;
  const std::int64_t of_replica = options.batch / options.data;
  return DivisionProblem{
      "strategy.micro_batches",
      fmt::format("{} micro-batches do not divide a replica's batch of {}; {}", options.micro_batches, of_replica,
                  nearest_divisors(of_replica, options.micro_batches))};
}

// Returns the parameters in the last stage's copy of an embedding that shares its weights with a layer there.
std::int64_t tied_parameters(const Model& model, int tensor) {
  std::int64_t most = 0;
  for (const Layer& layer : model.layers) {
    if (!layer.shared_weights || layer.is_frozen) continue;
    const Layer part = layer_part(layer, tensor, 0);
    most = std::max(most, part.gemm->depth * part.gemm->columns);
  }
  return most;
}

// The last stage's copy of a table that does not learn.
void copy_frozen_table(Layer& layer) {
  if (layer.shared_weights && layer.is_frozen) layer.frozen = {layer.gemm->depth * layer.gemm->columns};
}

// Returns the elements that go between two stages in one pass, in both directions.
std::int64_t sent_at(std::size_t boundary, const Model& model, const DeviceShare& share) {
  if (boundary == 0 || boundary == model.layers.size()) return 0;
  return 2 * share.examples * model.layers[boundary - 1].output_elements() / share.row_parts;
}

}  // namespace

std::optional<DivisionProblem> MeshDivision::problem(const DivisionRequest& request) const {
  const auto& [model, settings, options] = request;
  if (settings.gradient_accumulation_steps > 1) {
    return DivisionProblem{"workload.gradient_accumulation_steps", "gradients are accumulated over micro_batches"};
  }
  if (auto found = interleaving_problem(options)) return found;
  if (auto found = order_problem(request)) return found;
  if (auto found = overlap_problem(options)) return found;
  if (auto found = shared_expert_problem(model, options)) return found;
  if (options.order != PipelineOrder::one_forward_one_backward && !has_passes_of_weights(schedule(0, options))) {
    return DivisionProblem{"strategy.schedule", "this strategy has an order of passes of its own"};
  }
  if (auto found = expert_tensor_problem(request)) return found;
  if (auto found = problem_at("strategy.tensor", tensor_problem(model, options.tensor, options.expert_parts()))) {
    return found;
  }
  const char* const stages_by = options.stage_blocks.empty() ? "strategy.pipeline" : "strategy.stage_blocks";
  if (auto found = problem_at(stages_by, stage_problem(model, options.stages(), options.stage_blocks))) return found;
  if (auto found = offload_problem(request, first_layers(model, options))) return found;
  if (auto found = problem_at("strategy.context", context_problem(model, options.context))) return found;
  if (options.context > 1 && options.context_exchange == ContextExchange::all_to_all) {
    if (auto found = problem_at("strategy.context", heads_problem(model, options.context, options.tensor)))
      return found;
  }
  if (auto found = experts_problem(request)) return found;
  if (auto found = sharding_problem(model, options)) return found;
  if (settings.sequence_parallel) {
    auto found = problem_at("workload.sequence_parallel", sequence_problem(model, options.tensor, options.context));
    if (found) return found;
  }
  return batch_problem(model, options);
}

std::vector<PipelineAction> MeshDivision::schedule(int place, const ParallelOptions& options) const {
  const int devices = options.pipeline, chunks = options.virtual_stages, passes = options.micro_batches;
  switch (options.order) {
    case PipelineOrder::one_forward_one_backward:
      return options.overlap_experts ? alternating_one_forward_one_backward(place, devices, chunks, passes)
                                     : interleaved_one_forward_one_backward(place, devices, chunks, passes);
    case PipelineOrder::zero_bubble:
      return zero_bubble(place, devices, chunks, passes);
    case PipelineOrder::zero_bubble_h2:
      return zero_bubble_h2(place, devices, passes);
    case PipelineOrder::zero_bubble_v:
      return zero_bubble_v(place, devices, passes);
    case PipelineOrder::dual_pipe_v:
      return dual_pipe_v(place, devices, passes);
    case PipelineOrder::dual_pipe:
      return dual_pipe(place, devices, passes);
  }
  TANDEM_UNREACHABLE("an order of passes");
}

std::vector<std::size_t> MeshDivision::first_layers(const Model& model, const ParallelOptions& options) const {
  return first_layers_of_stages(model, options.stages(), options.stage_blocks);
}

namespace {

// Two buckets of parameters and two of their gradients are whole at a time, and a table that two layers share.
void shard(const DivisionRequest& request, DeviceShare& share) {
  const auto& [model, settings, options] = request;
  const std::int64_t devices = options.replicas();
  share.parameters[0].parts = devices / options.replicate;
  share.parameters[1].parts = std::int64_t{options.devices_with_experts()} * options.ways() / options.expert;
  const auto stored_bytes = static_cast<std::int64_t>(size_of(settings.parameter_type()));
  const auto used_bytes = static_cast<std::int64_t>(size_of(settings.storage()));
  std::int64_t whole = 0;
  for (const DeviceShare::Stage& stage : share.stages) {
    const bool has_table = std::ranges::any_of(stage.layers, &Layer::shared_weights);
    std::vector<Layer> others = stage.layers;
    const auto table = std::ranges::find_if(others, [](const Layer& layer) { return layer.embedding.has_value(); });
    if (has_table && table != others.end()) {
      whole += table->parameters();
      others.erase(table);
    }
    whole += 2 * largest_bucket(others, settings.bucket_bytes, stored_bytes, true);
  }
  share.reduced_together = whole + whole * used_bytes / stored_bytes;
}

}  // namespace

std::vector<DeviceShare> MeshDivision::shares(const DivisionRequest& request) const {
  std::vector<DeviceShare> shares;
  for (int place = 0; place < request.options.pipeline; ++place) shares.push_back(share(place, request));
  return shares;
}

// If layers or the batch do not divide evenly, the first devices have the largest parts. Gradients are reduced where
// they are, as in the buffers of Megatron-LM.
DeviceShare MeshDivision::share(int place, const DivisionRequest& request) const {
  const auto& [model, settings, options] = request;
  const LayerDivision division = layer_division(settings, options);
  const std::vector<std::size_t> first = first_layers(model, options);
  const std::vector<PipelineAction> actions = schedule(place, options);
  const std::int64_t of_replica = part_of(options.batch, options.data, 0).count;
  DeviceShare share{.actions = actions,
                    .examples = part_of(of_replica, options.micro_batches, 0).count,
                    .row_parts = division.divides_rows ? options.tensor : 1,
                    .expert_row_parts = division.divides_rows ? division.expert_tensor : 1,
                    .key_parts = options.key_parts(),
                    .key_rounds = options.passes_pieces() ? options.context : 1,
                    .exchanges_heads = options.context > options.key_parts()};
  std::int64_t parameters = 0, of_experts = 0;
  for (int chunk = 0; chunk < options.chunks(); ++chunk) {
    const auto stage = static_cast<std::size_t>(options.stage_of(place, chunk));
    DeviceShare::Stage& mine = share.stages.emplace_back();
    mine.live = live_micro_batches(actions, chunk);
    const bool is_last = static_cast<int>(stage) + 1 == options.stages();
    const bool keeps_table = is_last && stage > 0 && !options.ends_meet();  // a copy of the first stage's
    for (std::size_t i = first[stage]; i < first[stage + 1]; ++i) {
      mine.layers.push_back(divided_layer(model.layers[i], division, 0));
      if (keeps_table) copy_frozen_table(mine.layers.back());
      const std::int64_t count = mine.layers.back().parameters();
      (options.has_groups_of_experts() && has_experts(model.layers[i]) ? of_experts : parameters) += count;
    }
    if (keeps_table) parameters += tied_parameters(model, options.tensor);
    for (const std::size_t boundary : {first[stage], first[stage + 1]}) {
      share.sent_together += sent_at(boundary, model, share) / options.context;
    }
  }
  const std::int64_t replicas = options.replicas(), shards = replicas / options.replicate;
  const std::int64_t with_experts = std::int64_t{options.devices_with_experts()} * options.ways();
  const bool divides_state = options.distributed_optimizer;
  share.parameters = {{.count = parameters, .state_parts = divides_state ? shards : 1},
                      {.count = of_experts, .state_parts = divides_state ? with_experts / options.expert : 1}};
  share.divides_state = divides_state;
  if (options.shard_parameters) shard(request, share);
  if (place == 0 || (options.ways() > 1 && place + 1 == options.pipeline)) {
    const std::int64_t tokens = (model.input_elements + options.context - 1) / options.context;
    share.input = of_replica * tokens;
  }
  return share;
}

namespace {

// Whether the devices that pass pieces of a sequence round all do the same: their ring is inside a worker, or each has
// a worker of its own.
bool is_alike_in_rings(const ParallelOptions& options) {
  const int places = std::max(1, options.per_worker / options.tensor);
  return places == 1 || places % options.context == 0;
}

}  // namespace

// The places in groups of devices tell these apart where a group ends inside a worker. Groups of whole workers do the
// same, whichever worker one looks at, unless they send to each other.
std::vector<std::int64_t> MeshDivision::kind_of(int rank, const ParallelOptions& options) const {
  const int tensor_place = rank % options.tensor, place = options.place_of_rank(rank);
  const auto has_whole_workers = [&](int places, int span) {
    const bool is_in_line = places % options.context == 0 || options.context % places == 0;
    return (is_in_line || options.axis_order == AxisOrder::tensor_data_pipeline) && span % options.per_worker == 0;
  };
  const auto among = [&](int places) {
    return has_whole_workers(places, options.span_of_places(places)) ? 0 : place % places;
  };
  const int with_experts = std::max(1, options.expert * options.expert_parts() / options.tensor);  // places
  return {options.stage_of_rank(rank),
          tensor_place,
          options.passes_pieces() && !is_alike_in_rings(options) ? place % options.context : among(options.context),
          has_whole_workers(with_experts, options.span_of_experts())
              ? 0
              : options.place_with_experts(place, tensor_place) % options.expert,
          options.replicate > 1 ? among(options.replicas() / options.replicate) : 0,
          part_of(options.batch, options.data, place / options.context).count};
}

// The parts of a layer, in replicas that are neighbours as well, unless stages are between these: among those that
// divide sequences or experts where any do. A worker has whole groups of both, or a part of one.
int MeshDivision::alike_neighbours(const DivisionRequest& request) const {
  const ParallelOptions& options = request.options;
  const int parts = options.expert_parts();
  const auto is_divided_equally = [&](const Layer& layer) {
    return divides_equally(layer, has_experts(layer) ? parts : options.tensor);
  };
  if (options.batch % options.data != 0 || !std::ranges::all_of(request.model.layers, is_divided_equally)) return 1;
  const int with_all_experts = options.expert * parts;  // neighbours
  if (options.expert > 1 && with_all_experts % options.tensor != 0) return 1;
  if (options.per_worker % options.tensor != 0) return options.tensor;
  if (options.passes_pieces() && !is_alike_in_rings(options)) return options.tensor;
  const bool are_stages_between = options.pipeline > 1 && options.axis_order == AxisOrder::tensor_pipeline_data;
  const int places = options.context * (are_stages_between ? 1 : options.data);
  int neighbours = std::gcd(places, options.per_worker / options.tensor);
  if (options.context > 1) neighbours = std::gcd(neighbours, options.context);
  if (options.expert > 1) neighbours = std::gcd(neighbours, with_all_experts / options.tensor);
  if (options.replicate > 1) neighbours = std::gcd(neighbours, options.replicas() / options.replicate);
  return options.tensor * neighbours;
}

}  // namespace tandem
