#include "scenarios/import/megatron_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "scenarios/import/layer_expressions.h"
#include "strategies/parallel/layout/nearest_sizes.h"

namespace tandem {
namespace {

void divides(const Flags& flags, std::int64_t total, std::int64_t parts, std::string_view flag, const char* what) {
  if (total % parts != 0) flags.fail(flag, fmt::format("{} does not divide {} {}", parts, total, what));
}

// "Ett|(tt|)*6tL": the embedding and two layers, six stages of two, and one with the loss.
MegatronStages read_layout(const Flags& flags, std::int64_t pipeline, std::int64_t layers, std::int64_t predictors) {
  const char* const flag = "pipeline_model_parallel_layout";
  const auto stages = stages_of_layout(flags.text(flag), predictors > 0);
  if (!stages) flags.fail(flag, "is no layout such as Ett|(tt|)*6tL");
  const std::int64_t sum = std::accumulate(stages->begin(), stages->end(), std::int64_t{0});
  if (sum != layers + predictors) {
    const std::string more = predictors > 0 ? fmt::format(" and --mtp-num-layers {}", predictors) : "";
    flags.fail(flag, fmt::format("has {} layers, and --num-layers is {}{}", sum, layers, more));
  }
  const auto count = static_cast<std::int64_t>(stages->size());
  divides(flags, count, pipeline, flag, "stages");
  MegatronStages result{.of_device = count / pipeline};
  if (count == 1) return result;
  const auto empty = std::find(stages->begin() + 1, stages->end() - 1, 0);
  if (empty != stages->end() - 1) {
    flags.fail(flag, fmt::format("stage {} has no layer t: only the first and the last one may have none, and layers "
                                 "that predict further tokens (m) are left out",
                                 empty - stages->begin()));
  }
  result.blocks = *stages;
  return result;
}

// The first and the last device may have numbers of layers of their own, or the embedding and the loss may count as a
// layer each.
std::vector<std::int64_t> layers_of_devices(const Flags& flags, std::int64_t pipeline, std::int64_t layers,
                                            std::int64_t more) {
  const char* const first_flag = "decoder_first_pipeline_num_layers";
  const char* const last_flag = "decoder_last_pipeline_num_layers";
  const std::int64_t first = flags.number(first_flag, 0), last = flags.number(last_flag, 0);
  const char* const given = first > 0 ? first_flag : last_flag;
  if (first + last > 0 && more > 0) {
    flags.fail(given, "cannot be given together with --account-for-embedding-in-pipeline-split or -loss-");
  }
  const std::int64_t others = pipeline - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t left = layers + more - first - last;
  if (others < 0 || left < others || (others == 0 && left != 0)) {
    flags.fail(first + last > 0 ? given : "pipeline_model_parallel_size",
               fmt::format("{} stages, of which the first has {} layers and the last {} (0: as the others), do not "
                           "divide {} layers",
                           pipeline, first, last, layers));
  }
  if (others > 0) {
    divides(flags, left, others, "pipeline_model_parallel_size", more > 0 ? "layers, embedding and loss" : "layers");
  }
  std::vector<std::int64_t> of_devices(static_cast<std::size_t>(pipeline), others > 0 ? left / others : 0);
  if (first > 0) of_devices.front() = first;
  if (last > 0) of_devices.back() = last;
  return of_devices;
}

// The words of NVIDIA/Megatron-LM, megatron/training/arguments.py, the usual one first.
constexpr std::array kCommTypes = {std::pair{std::string_view("p2p"), ContextExchange::ring},
                                   std::pair{std::string_view("a2a"), ContextExchange::all_to_all},
                                   std::pair{std::string_view("allgather"), ContextExchange::all_gather},
                                   std::pair{std::string_view("a2a+p2p"), ContextExchange::ring}};

// Arguments that are printed have brackets and quotation marks.
std::vector<std::string> comm_types_of(std::string text) {
  std::ranges::replace_if(
      text, [](char one) { return std::string_view("[]',\"").find(one) != std::string_view::npos; }, ' ');
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// Heads that share keys and values stay together.
void check_heads(const Flags& flags, std::int64_t tensor, std::int64_t context) {
  const bool has_groups = flags.is_on("group_query_attention") && !flags.is_on("multi_latent_attention");
  const std::int64_t all = has_groups ? flags.number("num_query_groups", 1) : flags.number("num_attention_heads", 1);
  const std::int64_t heads = all / tensor;
  if (heads > 0 && heads % context == 0) return;
  flags.fail("cp_comm_type",
             fmt::format("a2a divides heads: {} devices of --context-parallel-size do not divide the heads of keys "
                         "and values, of which a device has {}; {}; p2p and allgather divide tokens only",
                         context, heads, nearest_divisors(std::max<std::int64_t>(1, heads), context)));
}

}  // namespace

MegatronStages read_stages(const Flags& flags, std::int64_t pipeline, std::int64_t layers, std::int64_t predictors) {
  if (flags.is_on("pipeline_model_parallel_layout")) return read_layout(flags, pipeline, layers, predictors);
  const std::int64_t embedding = flags.is_on("account_for_embedding_in_pipeline_split") ? 1 : 0;
  const std::int64_t loss = flags.is_on("account_for_loss_in_pipeline_split") ? 1 : 0;
  const std::vector<std::int64_t> of_devices = layers_of_devices(flags, pipeline, layers, embedding + loss);
  MegatronStages result;
  const std::int64_t of_stage = flags.number("num_layers_per_virtual_pipeline_stage", 0);
  if (of_stage > 0) {
    divides(flags, of_devices.front(), of_stage, "num_layers_per_virtual_pipeline_stage", "layers of a device");
    result.of_device = of_devices.front() / of_stage;
  }
  const char* const stages = "num_virtual_stages_per_pipeline_rank";
  if (const auto given = flags.number(stages)) result.of_device = *given;
  if (result.of_device < 1) flags.fail(stages, "must be at least 1, found 0");
  for (const std::int64_t mine : of_devices) divides(flags, mine, result.of_device, stages, "layers");
  const bool are_equal = std::ranges::adjacent_find(of_devices, std::ranges::not_equal_to()) == of_devices.end();
  if ((are_equal && embedding + loss + predictors == 0) || pipeline * result.of_device == 1) return result;
  for (std::int64_t chunk = 0; chunk < result.of_device; ++chunk) {
    for (const std::int64_t mine : of_devices) result.blocks.push_back(mine / result.of_device);
  }
  result.blocks.front() -= embedding;
  result.blocks.back() += predictors - loss;
  return result;
}

ContextExchange context_exchange_of(const Flags& flags, std::int64_t tensor, std::int64_t context,
                                    std::vector<std::string>& left_out) {
  const std::vector<std::string> words = comm_types_of(flags.text("cp_comm_type", kCommTypes.front().first));
  if (words.empty()) flags.fail("cp_comm_type", "needs p2p, a2a, allgather or a2a+p2p");
  for (const std::string& word : words) {
    if (std::ranges::find(kCommTypes, word, &decltype(kCommTypes)::value_type::first) == kCommTypes.end()) {
      flags.fail("cp_comm_type", fmt::format("must be p2p, a2a, allgather or a2a+p2p, found '{}'", word));
    }
  }
  const std::string& first = words.front();
  if (std::ranges::adjacent_find(words, std::ranges::not_equal_to()) != words.end()) {
    left_out.push_back(fmt::format("--cp-comm-type: every layer exchanges as the first one ({})", first));
  }
  if (first == "a2a+p2p") {
    left_out.emplace_back(
        "--cp-comm-type a2a+p2p: keys and values go round all devices of a sequence; where n neighbours first exchange "
        "heads for tokens, rounds and bytes between their groups are 1/n");
  }
  const ContextExchange exchange =
      std::ranges::find(kCommTypes, first, &decltype(kCommTypes)::value_type::first)->second;
  if (exchange == ContextExchange::all_to_all) check_heads(flags, tensor, context);
  return exchange;
}

std::string_view comm_type_of(ContextExchange exchange) {
  return std::ranges::find(kCommTypes, exchange, &decltype(kCommTypes)::value_type::second)->first;
}

// By default, experts are divided as the other layers are. Where fewer devices divide them, these need tokens of their
// own, as Megatron-LM demands of every mixture of experts with tensor parallelism.
std::int64_t tensor_of_experts(const Flags& flags, std::int64_t tensor, std::vector<std::string>& left_out) {
  const char* const flag = "expert_tensor_parallel_size";
  const std::int64_t devices = flags.number(flag, tensor);
  if (devices < 1) flags.fail(flag, fmt::format("must be at least 1, found {}", devices));
  if (devices == tensor || flags.number("num_experts", 1) == 1) return 0;
  const bool divides = tensor % devices == 0;
  if (divides && flags.is_on("sequence_parallel")) return devices;
  left_out.push_back(fmt::format("--expert-tensor-parallel-size {}: experts are divided as the other layers are; {}",
                                 devices,
                                 divides ? "without --sequence-parallel, devices have no tokens of their own"
                                         : fmt::format("it does not divide --tensor-model-parallel-size {}", tensor)));
  return 0;
}

}  // namespace tandem
