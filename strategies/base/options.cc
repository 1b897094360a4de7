#include "strategies/base/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {

std::string_view name_of(ReduceOp op) {
  return op == ReduceOp::sum ? "SUM" : "MEAN";
}

std::string_view name_of(VariableSynchronization synchronization) {
  switch (synchronization) {
    case VariableSynchronization::automatic:
      return "AUTO";
    case VariableSynchronization::none:
      return "NONE";
    case VariableSynchronization::on_write:
      return "ON_WRITE";
    case VariableSynchronization::on_read:
      return "ON_READ";
  }
  TANDEM_UNREACHABLE("a VariableSynchronization");
}

std::string_view name_of(VariableAggregation aggregation) {
  switch (aggregation) {
    case VariableAggregation::none:
      return "NONE";
    case VariableAggregation::sum:
      return "SUM";
    case VariableAggregation::mean:
      return "MEAN";
    case VariableAggregation::only_first_replica:
      return "ONLY_FIRST_REPLICA";
  }
  TANDEM_UNREACHABLE("a VariableAggregation");
}

ReduceOp reduce_op_from_name(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "SUM") return ReduceOp::sum;
  if (upper == "MEAN") return ReduceOp::mean;
  throw ValueError(fmt::format("unknown reduce op '{}' (known: SUM, MEAN)", name));
}

ReduceOp reduce_op_from_aggregation(VariableAggregation aggregation) {
  if (aggregation == VariableAggregation::sum) return ReduceOp::sum;
  if (aggregation == VariableAggregation::mean) return ReduceOp::mean;
  throw ValueError(fmt::format("aggregation {} has no reduce op", name_of(aggregation)));
}

VariableSynchronization variable_synchronization_from_name(std::string_view name) {
  using enum VariableSynchronization;
  for (const VariableSynchronization mode : {automatic, none, on_write, on_read}) {
    if (name_of(mode) == name) return mode;
  }
  throw ValueError(
      fmt::format("Invalid variable synchronization mode '{}' (known: AUTO, NONE, ON_WRITE, ON_READ)", name));
}

VariableAggregation variable_aggregation_from_name(std::string_view name) {
  using enum VariableAggregation;
  for (const VariableAggregation mode : {none, sum, mean, only_first_replica}) {
    if (name_of(mode) == name) return mode;
  }
  throw ValueError(
      fmt::format("Invalid variable aggregation mode '{}' (known: NONE, SUM, MEAN, ONLY_FIRST_REPLICA)", name));
}

void check_packing(const Packing& packing) {
  if (packing.num_packs < 0) throw ValueError(fmt::format("num_packs is {}, must not be negative", packing.num_packs));
  if (packing.bytes_per_pack < 0) {
    throw ValueError(fmt::format("bytes_per_pack is {}, must not be negative", packing.bytes_per_pack));
  }
}

}  // namespace tandem
