// Shards of variables, for cases of sharded ones.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "strategies/variables/sharded_variable.h"
#include "tests/conformance/tf/stage.h"

namespace tandem {

inline Json shards_of(const Stage& stage, const ShardedVariable& variable) {
  Json shards = Json::array();
  for (const auto& shard : variable.variables()) shards.push_back(stage.json(shard->read()));
  return shards;
}

inline std::shared_ptr<Variable> shard(const Stage& stage, const Shape& shape, std::vector<double> values,
                                       DType dtype = DType::f32) {
  return stage.strategy.create_variable(
      {.name = "shard", .dtype = dtype, .shape = shape, .initial_value = [values = std::move(values)](std::int64_t i) {
         return values.at(static_cast<std::size_t>(i));
       }});
}

}  // namespace tandem
