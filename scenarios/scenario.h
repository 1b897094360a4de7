// A scenario: what is trained, how it is distributed, in which world and on what machine. docs/scenarios.md
// describes every field of the file.
//
// Threads: a loaded Scenario is immutable and may be shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "scenarios/labelled_rows.h"
#include "scenarios/model.h"
#include "strategies/parameter_server.h"
#include "topologies/base/error.h"

namespace tandem {

class YamlDocument;

// A classifier of rows of numbers, trained for real: hidden ReLU layers, softmax cross entropy, SGD.
struct MlpSettings {
  std::shared_ptr<const LabelledRows> rows;
  std::vector<int> hidden = {512, 512};
  double learning_rate = 0.1;
  double momentum = 0;
  std::uint64_t seed = 1;
};

// A model's layers as work without meaning: true shapes, gradients and collectives, no values worth looking at.
struct LayersSettings {
  Model model;
  DType dtype = DType::f32;
  std::int64_t bucket_bytes = 25'000'000;  // of gradients reduced together
  bool overlap = true;                     // a bucket is reduced while the backward pass goes on
};

struct WorkloadSettings {
  int batch = 1;  // global: of all replicas together
  std::variant<MlpSettings, LayersSettings> kind;
};

// Of the strategies that divide the model: fully_sharded, tensor_parallel, pipeline_parallel, mesh.
struct MeshSettings {
  int data = 1, tensor = 1, pipeline = 1;  // devices along each axis; strategy 'mesh'
  int micro_batches = 1;                   // parts of a replica's batch that go through a pipeline one after the other
};

struct StrategySettings {
  std::string name = "mirrored";
  std::string cross_device_ops = "auto";       // "auto": the strategy's own choice
  int num_packs = 1;                           // tensors reduced together are packed into so many; 0: not packed
  std::optional<std::int64_t> bytes_per_pack;  // instead: packs of at least so many bytes
  VariablePlacement placement = VariablePlacement::round_robin;  // of variables on parameter servers
  MeshSettings mesh{};
};

struct EngineSettings {
  std::string name = "cpu";
  std::optional<ValueMode> values;
  std::optional<CollectiveFidelity> collectives;
  bool graphs = false;  // ops that come again are launched together
};

struct DeviceSettings {
  DeviceType type = DeviceType::cpu;
  int per_worker = 1;
  std::optional<int> workers{};  // that train; empty: as many as the topology has, or 1
  bool chief = false;            // whether the first of them is the chief
  std::optional<int> ps{};       // parameter servers; empty: 1 where the strategy needs one, else 0
};

// What a run must show, over its measured steps.
struct Expectations {
  std::optional<double> min_test_accuracy;
  std::optional<double> max_final_loss;
  std::optional<double> max_step_time_s;            // of the median
  std::optional<double> min_throughput;             // units/s
  std::optional<double> max_exposed_communication;  // share of the step time, 0..1
};

struct Scenario {
  std::string file;  // empty for one made in memory
  std::string name;
  std::string description;
  WorkloadSettings workload;
  StrategySettings strategy;
  EngineSettings engine;
  std::shared_ptr<const Topology> topology;  // null: this machine, calibrated when a simulation needs it
  DeviceSettings devices;
  int steps = 0;         // all of them, warm-up included
  int warmup_steps = 0;  // the first ones, left out of the report's figures
  Expectations expect;

  // FNV-1a, 16 hexadecimal digits, over the content (not comments or layout) of the file and the files it names.
  std::string hash;

  // Where `path`, such as "engine.name", stands in the file (or the nearest map around it), for messages found late.
  Diagnostic problem_at(std::string_view path, std::string message) const;
  std::shared_ptr<const YamlDocument> document{};
};

// Reads strictly. Throws InputError with every problem of the file and the files it names, in one go.
Scenario load_scenario(const std::filesystem::path& path);

// The same for text in memory; `file` names it in messages, and files are found relative to its folder.
Scenario parse_scenario(std::string_view text, const std::string& file);

}  // namespace tandem
