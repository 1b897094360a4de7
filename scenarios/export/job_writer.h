// What the writers of jobs share. For scenarios/export/export.cc.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/models/transformer.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {

struct JobToWrite {
  const Scenario& scenario;
  const LayersSettings& layers;
  ParallelOptions layout{};  // layout_of(scenario)
  TransformerSpec model{};   // transformer_of(layers.model)
  std::int64_t micro_batch() const { return layout.batch / layout.data / layout.micro_batches; }

  // Throws InputError at a key of the scenario.
  [[noreturn]] void refuse(std::string_view key, std::string message) const {
    throw InputError({scenario.problem_at(key, std::move(message))});
  }
};

// Returns the mesh of a scenario whose strategy divides the model. Passes over which gradients are accumulated count as
// micro-batches, and devices that keep pieces of all parameters as `shard_parameters`.
ParallelOptions layout_of(const Scenario& scenario);

// Throws InputError for what Megatron-LM itself refuses.
void check_limits_of_megatron(const JobToWrite& job);

// Return the job's text; each of `comments` is a line at its top. Throw InputError.
std::string megatron_script(const JobToWrite& job, const std::vector<std::string>& comments);
std::string titan_toml(const JobToWrite& job, const std::vector<std::string>& comments);

}  // namespace tandem
