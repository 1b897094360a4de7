#include "strategies/parallel/layout/parallel_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/parallel/layout/nearest_sizes.h"

namespace tandem {

const std::vector<std::pair<std::string, PipelineOrder>>& pipeline_orders() {
  static const std::vector<std::pair<std::string, PipelineOrder>> orders = {
      {"1f1b", PipelineOrder::one_forward_one_backward}, {"zero_bubble", PipelineOrder::zero_bubble},
      {"zero_bubble_h2", PipelineOrder::zero_bubble_h2}, {"zero_bubble_v", PipelineOrder::zero_bubble_v},
      {"dualpipe_v", PipelineOrder::dual_pipe_v},        {"dualpipe", PipelineOrder::dual_pipe}};
  return orders;
}

const std::vector<std::pair<std::string, ContextExchange>>& context_exchanges() {
  static const std::vector<std::pair<std::string, ContextExchange>> exchanges = {
      {"all_gather", ContextExchange::all_gather},
      {"ring", ContextExchange::ring},
      {"all_to_all", ContextExchange::all_to_all}};
  return exchanges;
}

const std::vector<std::pair<std::string, AxisOrder>>& axis_orders() {
  static const std::vector<std::pair<std::string, AxisOrder>> orders = {
      {"tensor_data_pipeline", AxisOrder::tensor_data_pipeline},
      {"tensor_pipeline_data", AxisOrder::tensor_pipeline_data}};
  return orders;
}

const std::string& name_of(AxisOrder order) {
  const auto& orders = axis_orders();
  return std::ranges::find(orders, order, &std::pair<std::string, AxisOrder>::second)->first;
}

const std::string& name_of(ContextExchange exchange) {
  const auto& exchanges = context_exchanges();
  return std::ranges::find(exchanges, exchange, &std::pair<std::string, ContextExchange>::second)->first;
}

const std::string& name_of(PipelineOrder order) {
  const auto& orders = pipeline_orders();
  return std::ranges::find(orders, order, &std::pair<std::string, PipelineOrder>::second)->first;
}

bool ParallelOptions::ends_meet() const {
  return order == PipelineOrder::zero_bubble_v || order == PipelineOrder::dual_pipe_v ||
         order == PipelineOrder::dual_pipe;
}

int ParallelOptions::stage_of(int place, int chunk) const {
  if (!ends_meet()) return chunk * pipeline + place;
  return chunk == 0 ? place : stages() - 1 - place;
}

int ParallelOptions::place_of(int stage, int chunk) const {
  if (!ends_meet()) return stage % pipeline;
  const bool is_on_way_back = ways() == 2 ? chunk == 1 : stage >= pipeline;
  return is_on_way_back ? stages() - 1 - stage : stage;
}

int ParallelOptions::rank_of(int place, int stage, int tensor_place) const {
  const int replica = place / context, part = place % context;
  const int outer = axis_order == AxisOrder::tensor_pipeline_data ? replica * pipeline + stage : stage * data + replica;
  return (outer * context + part) * tensor + tensor_place;
}

int ParallelOptions::place_of_rank(int rank) const {
  const int part = rank / tensor % context, outer = rank / tensor / context;
  const int replica = axis_order == AxisOrder::tensor_pipeline_data ? outer / pipeline : outer % data;
  return replica * context + part;
}

int ParallelOptions::stage_of_rank(int rank) const {
  const int outer = rank / tensor / context;
  return axis_order == AxisOrder::tensor_pipeline_data ? outer % pipeline : outer / data;
}

int ParallelOptions::span_of_places(int places) const {
  const bool are_stages_between = places > context && axis_order == AxisOrder::tensor_pipeline_data;
  return places * tensor * (are_stages_between ? pipeline : 1);
}

int ParallelOptions::span_of_experts() const {
  const int devices = expert * expert_parts();
  return devices <= tensor ? devices : span_of_places(devices / tensor);
}

void check_interleaving(const ParallelOptions& options) {
  if (options.virtual_stages == 1) return;
  if (options.pipeline == 1) {
    throw ValueError(fmt::format("{} virtual stages of each device need a pipeline of at least two devices",
                                 options.virtual_stages));
  }
  if (options.micro_batches % options.pipeline != 0) {
    throw ValueError(
        fmt::format("with virtual stages, micro-batches go through the {} devices of a pipeline in "
                    "rounds of {}; {} of them do not divide into rounds, {}",
                    options.pipeline, options.pipeline, options.micro_batches,
                    nearest_multiples(options.pipeline, options.micro_batches)));
  }
}

}  // namespace tandem
