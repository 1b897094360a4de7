#include "scenarios/run/unused_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/engine_info.h"
#include "scenarios/reading/sweep_settings.h"
#include "scenarios/run/unused_fault_keys.h"
#include "scenarios/run/unused_mesh_keys.h"
#include "scenarios/run/unused_stack_keys.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/figures.h"

namespace tandem {
namespace {

// A run, as the rules see it.
struct Run {
  const Job& job;
  const Report& report;
  const Timeline& timeline;

  bool consulted(const std::string& input) const { return timeline.consulted.contains(input); }
  bool learns() const { return job.layers != nullptr ? job.layers->learning.has_value() : job.trace == nullptr; }
  std::string engine_text() const { return fmt::format("engine '{}'", job.engine.name); }
};

// The rules. Each returns why its key has no effect, or nothing where it has one.

std::string why_packing(const Run& run) {
  if (!run.job.strategy.packs_tensors) return fmt::format("strategy '{}' packs no tensors", run.job.strategy.name);
  if (run.job.layers != nullptr)
    return "gradients of a table of layers are added up bucket by bucket (workload.bucket_bytes)";
  return run.report.replicas > 1 ? "" : "one replica has nothing to add up";
}

std::string why_placement(const Run& run) {
  const int servers = run.job.servers;
  if (servers == 0) return "there is no parameter server";
  return servers == 1 ? "the only parameter server keeps every variable" : "";
}

std::string why_updates(const Run& run) {
  if (run.job.servers == 0) return "there is no parameter server";
  return run.job.workers == 1 ? "the only worker waits for nobody" : "";
}

std::string why_values(const Run& run) {
  const bool carries = run.job.models_machine
                           ? run.job.scenario.engine.values == ValueMode::real
                           : run.job.scenario.engine.values.value_or(ValueMode::real) == ValueMode::real;
  return carries ? "" : "tensors hold no values (engine.values)";
}

std::string why_spread(const Run& run) {
  if (!run.job.models_machine) return run.engine_text() + " measures, and does not predict";
  if (run.job.devices_in_step <= 1) return "no device waits for another in a step";
  return run.consulted("work_spread") ? "" : "only times of GPUs that follow from their figures depend on it";
}

std::string why_momentum(const Run& run) {
  return run.job.layers->optimizer == Optimizer::momentum ? why_values(run) : "only optimizer momentum reads it";
}

std::string why_dropout(const Run& run) {
  if (run.job.layers->model.has_operation(Pointwise::dropout)) return why_values(run);
  return fmt::format("model '{}' has no dropout", run.job.layers->model.name);
}

// Returns whether all gradients of the model fill less than one bucket of this size.
bool fits_in_bucket(const LayersSettings& layers, std::int64_t bucket_bytes) {
  return layers.model.parameters() * static_cast<std::int64_t>(size_of(layers.parameter_type())) < bucket_bytes;
}

std::string why_bucket(const Run& run) {
  const std::int64_t least = std::min(run.job.layers->bucket_bytes, LayersSettings{}.bucket_bytes);
  return fits_in_bucket(*run.job.layers, least) ? "all gradients fill less than one bucket" : "";
}

std::string why_overlap(const Run& run) {
  const bool is_one_bucket =
      !run.job.layers->variables_are_tensors && fits_in_bucket(*run.job.layers, run.job.layers->bucket_bytes);
  const Layer& first = run.job.layers->model.layers.front();
  // A frozen model has no backward pass before its first gradients.
  const bool ends_with_gradients = first.is_frozen || first.parameters() > 0;
  if (is_one_bucket && ends_with_gradients)
    return "all gradients fill less than one bucket, which the last one completes";
  if (run.job.servers > 0) return "";
  if (!run.job.divides_model) return run.report.replicas > 1 ? "" : "one replica has nothing to add up";
  const ParallelOptions& options = *run.job.mesh;
  return options.data * options.context > 1 ? "" : "one replica has nothing to add up";
}

std::string why_tensor(const Run& run) {
  const bool divides_layers = run.job.divides_model && run.job.mesh->tensor > 1;
  return divides_layers ? "" : "no layer is divided among devices (strategy.tensor)";
}

std::string why_overlap_products(const Run& run) {
  if (run.learns()) return "real values are exchanged before or after products";
  return why_tensor(run);
}

std::string why_variables(const Run& run) {
  if (!run.job.divides_model) return "";
  return fmt::format("strategy '{}' keeps no variables, but the parameters of its part of the model",
                     run.job.strategy.name);
}

std::string why_collectives(const Run& run) {
  return run.consulted("collectives") ? "" : "no collective of this run depends on it";
}

std::string why_graphs(const Run& run) {
  const bool is_for_gpus = run.job.scenario.devices.type == DeviceType::gpu;
  return is_for_gpus || !run.job.models_machine ? "" : "processors launch no graphs";
}

// Where workers may represent others, the results are the same whether they do: no note tells the reports apart.
std::string why_symmetry(const Run& run) {
  return run.job.engine.symmetry ? "" : run.engine_text() + " runs every worker";
}

std::string why_steady_state(const Run& run) {
  return run.job.models_machine ? "" : run.engine_text() + " runs every pass";
}

std::string why_no_values(const Run& run) {
  const bool is_asked = run.job.scenario.engine.values == ValueMode::real;
  return is_asked && !run.learns() ? "this workload computes no values that a report has" : "";
}

std::string why_workers(const Run& run) {
  std::set<int> used;
  for (const WorkerSpec& task : run.job.tasks) used.insert(task.topology_worker);
  const int machines = run.job.scenario.topology ? run.job.scenario.topology->worker_count() : 1;
  const auto count = static_cast<int>(used.size());
  return count == machines ? "" : fmt::format("the job has tasks on {} of {} machines", count, machines);
}

std::string why_chief(const Run& /*run*/) {
  return "it changes the name of the first worker's task, and nothing that the task does";
}

std::string why_reserved(const Run& run) {
  return run.report.memory ? "" : "no memory of a device is predicted";
}

std::string why_epoch(const Run& run) {
  return run.report.price ? "" : "no machine has a price (`price` of a topology)";
}

std::string why_sweep(const Run& /*run*/) {
  return "only `tandem sweep` reads it";
}

std::string why_evaluation(const Run& run) {
  return run.report.evaluations ? "" : "the job ends before the first evaluation";
}

using Why = std::string (*)(const Run&);
struct Rule {
  std::string_view key;
  Why why;
  bool is_of_layers = false;  // only workloads of kind `layers` have the key
};

// The keys of a scenario that have an effect in some runs only.
constexpr Rule kRules[] = {
    {"strategy.num_packs", why_packing},
    {"strategy.bytes_per_pack", why_packing},
    {"strategy.placement", why_placement},
    {"strategy.updates", why_updates},
    {"strategy.scatter_gather", [](const Run& run) { return why_mesh_scatter_gather(run.job); }},
    {"strategy.context_exchange", [](const Run& run) { return why_mesh_context_exchange(run.job); }},
    {"strategy.axis_order", [](const Run& run) { return why_mesh_axis_order(run.job); }},
    {"strategy.expert_tensor", [](const Run& run) { return why_mesh_expert_tensor(run.job); }},
    {"strategy.distributed_optimizer", [](const Run& run) { return why_mesh_optimizer(run.job); }},
    {"strategy.overlap_gather", [](const Run& run) { return why_mesh_optimizer(run.job); }},
    {"engine.values", why_no_values},
    {"engine.collectives", why_collectives},
    {"engine.graphs", why_graphs},
    {"engine.symmetry", why_symmetry},
    {"engine.steady_state", why_steady_state},
    {"devices.chief", why_chief},
    {"devices.reserved", why_reserved},
    {"topology.cluster.workers", why_workers},
    {"workload.spread", why_spread},
    {"workload.learning_rate", why_values},
    {"workload.seed", why_values},
    {"workload.data", why_values, true},
    {"workload.momentum", why_momentum, true},
    {"workload.dropout", why_dropout, true},
    {"workload.stack.layout", [](const Run& run) { return why_stack_layout(run.job, run.consulted("channels_last")); },
     true},
    {"workload.stack.fusion", [](const Run& run) { return why_stack_fusion(run.job); }, true},
    {"workload.stack.attention", [](const Run& run) { return why_stack_attention(run.job); }, true},
    {"workload.stack.accumulation", [](const Run& run) { return why_stack_accumulation(run.job); }, true},
    {"workload.stack.loss", [](const Run& run) { return why_stack_loss(run.job); }, true},
    {"workload.stack.experts", [](const Run& run) { return why_stack_experts(run.job); }, true},
    {"workload.experts.dispatch", [](const Run& run) { return why_mesh_dispatch(run.job); }, true},
    {"workload.experts.imbalance", [](const Run& run) { return why_mesh_dispatch(run.job); }, true},
    {"workload.bucket_bytes", why_bucket, true},
    {"workload.overlap", why_overlap, true},
    {"workload.overlap_tensor", why_tensor, true},
    {"workload.sequence_parallel", why_tensor, true},
    {"workload.overlap_products", why_overlap_products, true},
    {"workload.variables", why_variables, true},
    {"workload.epoch", why_epoch, true},
    {"evaluation.every", why_evaluation},
    {"evaluation.steps", why_evaluation},
    {"evaluation.batch", why_evaluation},
    {"recovery.policy", [](const Run& run) { return why_policy(run.job); }},
    {"recovery.detection", [](const Run& run) { return why_recovery(run.job); }},
    {"recovery.restart", [](const Run& run) { return why_recovery(run.job); }},
    {"recovery.spares", [](const Run& run) { return why_recovery(run.job); }},
    {"recovery.checkpoint.every", [](const Run& run) { return why_every(run.job); }},
    {"recovery.checkpoint.directory", [](const Run& run) { return why_directory(run.job); }},
    {"recovery.checkpoint.time", [](const Run& run) { return why_checkpoint_time(run.job); }},
    {"recovery.checkpoint.overlapped", [](const Run& run) { return why_overlapped(run.job); }},
    {"recovery.checkpoint.load", [](const Run& run) { return why_recovery(run.job); }},
    {"sweep", why_sweep},
};

// Returns the value that the file, a setting or a flag gives the key; null: none does.
const YamlNode* value_of(const Scenario& scenario, std::string_view key) {
  return scenario.document ? node_at(scenario.document->root(), key) : nullptr;
}

// Returns the key as the user gave it, in the file or by a flag; empty: not at all.
std::string key_as_given(const Scenario& scenario, const std::string& key) {
  if (value_of(scenario, key) == nullptr) return "";
  const auto flag = scenario.flags.find(key);
  return flag == scenario.flags.end() ? key : flag->second;
}

// Another engine than the scenario's takes none of these keys from it.
void find_keys_of_other_engine(const Run& run, UnusedKeys& unused) {
  const std::map<std::string, std::string>& flags = run.job.scenario.flags;
  for (const char* key :
       {"engine.values", "engine.collectives", "engine.nccl", "engine.symmetry", "engine.steady_state"}) {
    const auto flag = flags.find(key);
    if (flag == flags.end() || flag->second != flags.at("engine.name")) continue;
    unused.add(key, fmt::format("it is for the scenario's own engine, and this is {}", run.engine_text()));
  }
}

void find_keys_of_trace(const Run& run, UnusedKeys& unused) {
  const YamlNode* strategy = value_of(run.job.scenario, "strategy");
  if (strategy == nullptr) return;
  for (const YamlNode::Entry& entry : strategy->entries) {
    if (entry.key == "name") continue;
    unused.add(key_as_given(run.job.scenario, "strategy." + entry.key),
               "a trace does what was recorded, whatever the strategy");
  }
}

// Returns the keys that these notes name as unused.
std::set<std::string> keys_in(const std::vector<std::string>& notes) {
  std::set<std::string> keys;
  for (const std::string& note : notes) {
    if (!is_about_unused_keys(note)) continue;
    const std::size_t begin = note.find(": ") + 2;
    std::string_view listed = std::string_view(note).substr(begin, note.find(": ", begin) - begin);
    while (!listed.empty()) {
      const std::size_t end = std::min(listed.find(", "), listed.size());
      keys.emplace(listed.substr(0, end));
      listed.remove_prefix(std::min(end + 2, listed.size()));
    }
  }
  return keys;
}

}  // namespace

void UnusedKeys::add(const std::string& key, const std::string& why, const char* opening) {
  const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                  [&](const Reason& reason) { return reason.opening == opening && reason.why == why; });
  if (known != reasons_.end()) {
    known->keys += ", " + key;
  } else {
    reasons_.push_back({opening, key, why});
  }
}

std::vector<std::string> UnusedKeys::notes() const {
  std::vector<std::string> notes;
  for (const Reason& reason : reasons_) {
    notes.push_back(fmt::format("{}{}: {}", reason.opening, reason.keys, reason.why));
  }
  return notes;
}

void find_unused_keys(const Job& job, const Report& report, const Timeline& timeline, UnusedKeys& unused) {
  const Run run{.job = job, .report = report, .timeline = timeline};
  const Scenario& scenario = job.scenario;
  const bool is_other_engine = scenario.flags.contains("engine.name");
  if (is_other_engine) find_keys_of_other_engine(run, unused);
  if (job.trace != nullptr) find_keys_of_trace(run, unused);
  for (const Rule& rule : kRules) {
    const std::string key = key_as_given(scenario, std::string(rule.key));
    if (key.empty() || (rule.is_of_layers && run.job.layers == nullptr)) continue;
    if (is_other_engine && rule.key.starts_with("engine.") && !scenario.flags.contains(std::string(rule.key))) continue;
    if (job.trace != nullptr && rule.key.starts_with("strategy.")) continue;
    if (const std::string why = rule.why(run); !why.empty()) unused.add(key, why);
  }
  find_unused_variables(
      scenario.engine.nccl, timeline.consulted,
      [&](const std::string& variable) { return key_as_given(scenario, "engine.nccl." + variable); }, unused);
}

void find_unused_variables(const std::map<std::string, std::string>& nccl, const Consulted& consulted,
                           const std::function<std::string(const std::string&)>& key_of, UnusedKeys& unused) {
  const bool is_used = consulted.contains("nccl");
  for (const auto& [variable, value] : nccl) {
    if (consulted.contains("nccl." + variable)) continue;
    if (consulted.contains(fmt::format("nccl.{}{}", variable, kBeforeSteps))) {
      unused.add_doubtful(key_of(variable), "only what comes before the first step depends on it");
      continue;
    }
    unused.add(key_of(variable), is_used ? "NCCL does the same without it" : "no collective here is one of NCCL's");
  }
}

void find_unused_keys(const Topology& topology, const Consulted& consulted, UnusedKeys& unused) {
  const std::string form = fmt::format("{}.bandwidth", kUplink);
  for (const StatedKey& stated : topology.facts().stated_keys) {
    const auto any_is = [&](std::string_view when) {
      return std::any_of(stated.decides.begin(), stated.decides.end(), [&](const std::string& input) {
        return consulted.contains(input + std::string(when)) || (when.empty() && input.ends_with(".memory"));
      });
    };
    const bool is_form = std::find(stated.decides.begin(), stated.decides.end(), form) != stated.decides.end();
    if (any_is("")) continue;
    if (is_form) {
      unused.add_doubtful(stated.key, "no data crosses links between switches of the network");
    } else if (any_is(kBeforeSteps)) {
      unused.add_doubtful(stated.key, "only what comes before the first step depends on it");
    } else {
      unused.add(stated.key, "no time of this run depends on it");
    }
  }
}

bool may_have_representatives(const Job& job) {
  std::map<int, std::size_t> sizes;
  std::size_t most = 0;
  for (const int task : job.alike) most = std::max(most, ++sizes[task]);
  return most > kFewAlike;
}

Consulted with_links_of(const Topology& topology, Consulted consulted) {
  for (const StatedKey& stated : topology.facts().stated_keys) {
    for (const std::string& input : stated.decides) {
      const std::string key = input.substr(input.find('.') + 1);
      // Workers that represent others make no remote calls.
      const bool is_of_link =
          !key.starts_with("remote_call") &&
          (key == "transport" || std::any_of(kLinkFigures.begin(), kLinkFigures.end(),
                                             [&](const auto& figure) { return figure.first == key; }));
      if (is_of_link) consulted.insert(input);
    }
  }
  return consulted;
}

void keep_unused_in_both(std::vector<std::string>& notes, std::vector<std::string>& others) {
  const std::set<std::string> mine = keys_in(notes), theirs = keys_in(others);
  const auto drop = [](std::vector<std::string>& from, const std::set<std::string>& unused) {
    std::erase_if(from, [&](const std::string& note) {
      const std::set<std::string> keys = keys_in({note});
      return !keys.empty() &&
             std::none_of(keys.begin(), keys.end(), [&](const auto& key) { return unused.contains(key); });
    });
  };
  drop(notes, theirs);
  drop(others, mine);
}

bool is_about_unused_keys(std::string_view note) {
  return note.starts_with("has no effect here: ") || note.starts_with("may have no effect here: ");
}

}  // namespace tandem
