#include "scenarios/reading/condition_words.h"

#include <array>

#include "scenarios/job/job.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

const LayersSettings& layers_of(const Scenario& scenario) {
  static const LayersSettings kUsual;
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  return layers != nullptr ? *layers : kUsual;
}

template <int MeshSettings::*size>
ConditionValue mesh_size(const Scenario& scenario) {
  return static_cast<double>(scenario.strategy.mesh.*size);
}

ConditionValue training_workers_value(const Scenario& scenario) {
  return static_cast<double>(training_workers(scenario));
}
ConditionValue replicas_value(const Scenario& scenario) {
  return static_cast<double>(scenario.devices.per_worker);
}
ConditionValue servers_value(const Scenario& scenario) {
  return static_cast<double>(parameter_servers(scenario));
}
ConditionValue batch_value(const Scenario& scenario) {
  return static_cast<double>(scenario.workload.batch);
}
ConditionValue bucket_value(const Scenario& scenario) {
  return static_cast<double>(layers_of(scenario).bucket_bytes);
}
ConditionValue passes_value(const Scenario& scenario) {
  return static_cast<double>(layers_of(scenario).gradient_accumulation_steps);
}
ConditionValue overlap_value(const Scenario& scenario) {
  return layers_of(scenario).overlap ? 1.0 : 0.0;
}
ConditionValue checkpointing_value(const Scenario& scenario) {
  const LayersSettings& layers = layers_of(scenario);
  return layers.recomputed.any || has_recomputed_layers(layers.model) ? 1.0 : 0.0;
}
ConditionValue dtype_value(const Scenario& scenario) {
  return std::string(name_of(layers_of(scenario).dtype));
}
ConditionValue strategy_value(const Scenario& scenario) {
  return scenario.strategy.name;
}
ConditionValue cross_device_ops_value(const Scenario& scenario) {
  return scenario.strategy.cross_device_ops;
}

constexpr std::array<ConditionWord, 19> kWords{{
    {"strategy", "strategy.name", strategy_value},
    {"cross_device_ops", "strategy.cross_device_ops", cross_device_ops_value},
    {"data", "strategy.data", mesh_size<&MeshSettings::data>},
    {"tensor", "strategy.tensor", mesh_size<&MeshSettings::tensor>},
    {"pipeline", "strategy.pipeline", mesh_size<&MeshSettings::pipeline>},
    {"context", "strategy.context", mesh_size<&MeshSettings::context>},
    {"expert", "strategy.expert", mesh_size<&MeshSettings::expert>},
    {"micro_batches", "strategy.micro_batches", mesh_size<&MeshSettings::micro_batches>},
    {"virtual_stages", "strategy.virtual_stages", mesh_size<&MeshSettings::virtual_stages>},
    {"workers", "devices.workers", training_workers_value},
    {"replicas", "devices.per_worker", replicas_value},
    {"servers", "devices.ps", servers_value},
    {"batch", "workload.batch", batch_value},
    {"dtype", "workload.dtype", dtype_value},
    {"optimizer", "workload.optimizer", nullptr},
    {"bucket_bytes", "workload.bucket_bytes", bucket_value},
    {"overlap", "workload.overlap", overlap_value},
    {"gradient_accumulation_steps", "workload.gradient_accumulation_steps", passes_value},
    {"activation_checkpointing", "workload.activation_checkpointing", checkpointing_value},
}};

}  // namespace

std::span<const ConditionWord> condition_words() {
  return kWords;
}

const ConditionWord* find_condition_word(std::string_view name) {
  for (const ConditionWord& word : kWords) {
    if (name == word.name || name == word.path) return &word;
  }
  return nullptr;
}

ConditionValue condition_value(const std::string& text) {
  if (text == "true" || text == "false") return text == "true" ? 1.0 : 0.0;
  if (const auto number = parse_quantity(text, Dimension::bytes)) return *number;
  return text;
}

}  // namespace tandem
