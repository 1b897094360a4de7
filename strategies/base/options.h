// The enumerations of tf.distribute, and how tensors are packed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

enum class ReduceOp : std::uint8_t { sum, mean };
enum class VariableSynchronization : std::uint8_t { automatic, none, on_write, on_read };
enum class VariableAggregation : std::uint8_t { none, sum, mean, only_first_replica };
// Which task of the job "ps" keeps a new variable.
enum class VariablePlacement : std::uint8_t { round_robin, by_size, by_hash };
// When variables on the tasks of the job "ps" change. asynchronous: each worker updates them by itself.
// synchronous: once a step, with the sum over all workers, for which they wait.
enum class VariableUpdates : std::uint8_t { asynchronous, synchronous };

std::string_view name_of(ReduceOp op);                                 // "SUM"
std::string_view name_of(VariableSynchronization synchronization);     // "ON_READ"
std::string_view name_of(VariableAggregation aggregation);             // "ONLY_FIRST_REPLICA"
ReduceOp reduce_op_from_name(std::string_view name);                   // any letter case; else ValueError
ReduceOp reduce_op_from_aggregation(VariableAggregation aggregation);  // of SUM and MEAN; else ValueError
// Take the names above, "AUTO" for automatic. Throw ValueError for another name: "Invalid variable synchronization
// mode", "Invalid variable aggregation mode".
VariableSynchronization variable_synchronization_from_name(std::string_view name);
VariableAggregation variable_aggregation_from_name(std::string_view name);

// How tensors that are reduced together are packed. With bytes_per_pack > 0 a pack is closed once it is strictly larger
// than that; else with num_packs > 0 all tensors are split into so many pieces; else each tensor goes alone.
struct Packing {
  int num_packs = 1;
  std::int64_t bytes_per_pack = 0;
};

// Throws ValueError for negative numbers.
void check_packing(const Packing& packing);

}  // namespace tandem
