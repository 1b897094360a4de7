// A scenario: what is trained, how it is distributed, in which world and on what machine. docs/scenarios.md
// describes every field of the file.
//
// Threads: a loaded Scenario is immutable and may be shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/engine_info.h"
#include "scenarios/scenario/evaluation_settings.h"
#include "scenarios/scenario/labelled_rows.h"
#include "strategies/model/model.h"
#include "strategies/model/training_settings.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/parallel/layout/pipeline_schedule.h"
#include "strategies/strategies.h"
#include "topologies/base/error.h"

namespace tandem {

class SharedParts;
class YamlDocument;
struct FaultSettings;
struct RankTrace;
struct SweepSettings;

// A classifier of rows of numbers, trained for real: hidden ReLU layers, softmax cross entropy, SGD.
struct MlpSettings {
  std::shared_ptr<const LabelledRows> rows;
  std::vector<int> hidden = {512, 512};
  double learning_rate = 0.1;
  double momentum = 0;
  std::uint64_t seed = 1;
};

// How a table of layers learns that is really computed.
struct LearningSettings {
  std::shared_ptr<const std::string> text{};  // whose bytes are the tokens
  double learning_rate = 0.1;
  double momentum = 0;
  double dropout = 0;  // the probability that an element is dropped
  std::uint64_t seed = 1;
};

// Documents that share the sequences of a batch, and do not see each other.
struct PackedSequences {
  std::int64_t documents = 0, sequences = 0;  // that they fill
  std::int64_t sequence_tokens = 0;           // of each sequence
  std::int64_t tokens = 0;                    // of all documents
  double pairs = 1;  // of a sequence, as a share of those of one document that fills it: mean over the sequences
};

// The layers of a model as pure work: shapes, gradients and collectives are those of the model, but the values mean
// nothing, unless the layers are really computed.
struct LayersSettings : TrainingSettings {
  Model model;
  Stack stack{};                               // the model's, with what the scenario replaces
  bool variables_are_tensors = false;          // a variable for each tensor, as in TensorFlow; false: for each bucket
  std::int64_t epoch = 0;                      // examples of the data set, for the cost of an epoch; 0: unknown
  std::optional<LearningSettings> learning{};  // empty: pure work
  std::optional<PackedSequences> packed{};     // empty: a document in each sequence
};

// Ranks as they were recorded, played again: their kernels keep their times, their collectives are this engine's.
struct TraceSettings {
  std::shared_ptr<const std::vector<RankTrace>> ranks;  // those that have a trace
  int world = 1;                                        // number of ranks, one for each device
  int replica_size = 1;                                 // ranks of a replica, which follow each other
  std::vector<std::string> changes{};                   // differences from what was recorded, as notes
};

struct WorkloadSettings {
  int batch = 1;                   // global: all replicas together
  std::optional<double> spread{};  // EngineOptions::work_spread
  std::variant<MlpSettings, LayersSettings, TraceSettings> kind;
};

// Settings of the strategies that divide the model: see ModelDivision.
struct MeshSettings {
  int data = 1, tensor = 1, pipeline = 1;  // devices along each axis, where the strategy leaves them to the user
  int micro_batches = 1;                   // in how many parts a replica's batch passes through a pipeline
  int virtual_stages = 1;                  // stages of each device of a pipeline
  std::vector<int> stage_blocks{};         // ParallelOptions
  bool balances_stages = false;            // blocks that stages do not divide are divided nearly equally
  int context = 1, expert = 1;             // ParallelOptions
  AxisOrder axis_order = AxisOrder::tensor_data_pipeline;                             // likewise
  ContextExchange context_exchange = ContextExchange::all_gather;                     // likewise
  int expert_tensor = 0;                                                              // likewise
  bool scatter_gather = true, distributed_optimizer = false, overlap_gather = false;  // likewise
  bool shard_parameters = false, overlap_experts = false;                             // likewise
  bool overlap_shared_expert = false;                                                 // likewise
  PipelineOrder order = PipelineOrder::one_forward_one_backward;                      // likewise
  int replicate = 1;                                                                  // likewise
};

struct StrategySettings {
  std::string name{default_strategy_name()};
  std::string cross_device_ops = "auto";       // "auto": the strategy's own choice
  int num_packs = 1;                           // packs for tensors that are reduced together; 0: no packing
  std::optional<std::int64_t> bytes_per_pack;  // instead of num_packs: a pack is closed once it is larger
  VariablePlacement placement = VariablePlacement::round_robin;  // on parameter servers
  VariableUpdates updates = VariableUpdates::asynchronous;       // likewise
  MeshSettings mesh{};
  StrategyValues own{};  // of the strategy's own keys, those that are given
};

struct EngineSettings {
  std::string name{machine_engine().name};
  std::optional<ValueMode> values;
  std::optional<CollectiveFidelity> collectives;
  std::map<std::string, std::string> nccl{};  // see EngineOptions::nccl
  bool graphs = false;                        // sequences of ops that repeat are launched as one graph
  RecordLevel records = RecordLevel::all;
  bool symmetry = true;      // simulations: some workers may represent others that do the same
  bool steady_state = true;  // simulations: passes of a step that repeat one another may be simulated in part
};

struct DeviceSettings {
  DeviceType type = DeviceType::cpu;
  int per_worker = 1;
  std::optional<int> workers{};  // workers that train; empty: one for each machine
  bool chief = false;            // whether the first of them is the chief
  std::optional<int> ps{};       // parameter servers; empty: 1 if the strategy requires one, else 0
  // Memory that tensors do not get: so many bytes, and a share of what they take. Both are stated, never assumed.
  std::int64_t reserved_bytes = 0;
  double reserved_share = 0;
};

// Conditions that a run must meet, over its measured steps.
struct Expectations {
  std::optional<double> min_test_accuracy;
  std::optional<double> max_final_loss;
  std::optional<double> max_step_time_s;            // the mean
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
  int steps = 0;         // warm-up included
  int warmup_steps = 0;  // how many of the first steps the report's figures leave out
  std::optional<EvaluationSettings> evaluation{};
  Expectations expect;
  std::shared_ptr<const FaultSettings> faults{};  // null: nothing goes wrong
  std::shared_ptr<const SweepSettings> sweep{};   // null: none

  // In a scenario that flags of the command line, or a launch, have changed (with_flags()): by key, the flag that gave
  // the value or left the key out, "" for a launch; and what a report has to say of these changes.
  std::map<std::string, std::string> flags{};
  std::vector<std::string> notes{};

  // The hash of the content (not the comments or the layout) of the file and of the files it names: content_hash().
  // Flags do not change it.
  std::string hash;

  // Makes a diagnostic that points at `path`, such as "engine.name", in the file, or at the nearest map around it. For
  // problems that are found after reading.
  Diagnostic problem_at(std::string_view path, std::string message) const;
  std::shared_ptr<const YamlDocument> document{};
  std::shared_ptr<const SharedParts> parts{};  // what was made of the files that the document names; may be null
};

// A value that takes the place of the scenario's own, as one of a sweep does.
struct ScenarioSetting {
  std::string name;    // in messages: "--set workload.batch=64", "--steps 3"
  std::string path;    // "workload.batch"
  std::string value;   // in YAML; "~" leaves the key out
  std::string flag{};  // in Scenario::flags: "--steps"; empty for --set and for what no flag says
};

// Reads a scenario strictly. Throws one InputError with every problem of the file and of the files it names.
Scenario load_scenario(const std::filesystem::path& path, const std::vector<ScenarioSetting>& settings = {});

// Reads text in memory likewise. `file` names it in messages; files that it names are relative to the folder of `file`.
// `parts`: what was made of these before; null: nothing.
Scenario parse_scenario(std::string_view text, const std::string& file,
                        const std::vector<ScenarioSetting>& settings = {},
                        const std::shared_ptr<const SharedParts>& parts = nullptr);

// The name in messages of a scenario from the standard input; files that it names are relative to the working folder.
inline constexpr std::string_view kStandardInput = "<stdin>";

}  // namespace tandem
