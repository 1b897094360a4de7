#include "scenarios/run/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/errors/error_bands.h"
#include "reports/run/work_counts.h"
#include "reports/timeline/op_time.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/run/collective_limits.h"
#include "scenarios/run/system_text.h"
#include "scenarios/run/unused_keys.h"
#include "scenarios/scenario/labelled_rows.h"
#include "strategies/model/lora.h"

namespace tandem {
namespace {

std::vector<std::string> notes_of_trace(const TraceSettings& trace) {
  std::vector<std::string> notes;
  std::int64_t recorded_ns = 0;
  for (const RankTrace& rank : *trace.ranks) recorded_ns = std::max(recorded_ns, rank.recorded_ns);
  if (recorded_ns > 0) {
    notes.push_back(
        fmt::format("trace: recorded {:.6g} ms on {}", static_cast<double>(recorded_ns) * 1e-6,
                    trace.ranks->front().device.empty() ? "a device without a name" : trace.ranks->front().device));
  }
  for (const std::string& change : trace.changes) notes.push_back("trace: " + change);
  if (static_cast<int>(trace.ranks->size()) < trace.world) {
    notes.push_back(
        fmt::format("trace: {} of {} ranks have a trace; each of the others does what the nearest one before "
                    "it did",
                    trace.ranks->size(), trace.world));
  }
  for (const RankTrace& rank : *trace.ranks) {
    for (const std::string& note : rank.notes) notes.push_back(fmt::format("trace of rank {}: {}", rank.rank, note));
  }
  return notes;
}

// Notes how well the work of the layers is known: what a framework makes of them, and what no figure predicts.
std::vector<std::string> notes_of_workload(const Job& job) {
  std::vector<std::string> notes;
  if (job.trace != nullptr) return notes_of_trace(*job.trace);
  if (job.layers == nullptr) return notes;
  const LayersSettings* layers = job.layers;
  if (layers->model.depends_on_stack()) {
    notes.push_back("stack: " + layers->stack.text() +
                    (layers->stack.is_stated ? "" : " (assumed; neither the model nor the scenario states it)"));
  }
  if (const std::int64_t frozen = layers->model.frozen_parameters(); frozen > 0) {
    const std::int64_t learning = layers->model.parameters();
    const bool has_adapters =
        std::ranges::any_of(layers->model.layers, [](const Layer& l) { return l.adapter_rank > 0; });
    notes.push_back(fmt::format("{}: {} of {} parameters learn", has_adapters ? "LoRA" : "frozen layers", learning,
                                learning + frozen));
  }
  if (layers->packed) {
    const PackedSequences& packed = *layers->packed;
    const auto room = static_cast<double>(packed.sequences) * static_cast<double>(packed.sequence_tokens);
    notes.push_back(
        fmt::format("packed sequences: {} documents fill {} sequences of {} tokens, {:.1f} % of which are padding; "
                    "attention computes {:.1f} % of the pairs of whole sequences in every micro-batch",
                    packed.documents, packed.sequences, packed.sequence_tokens,
                    100 * (1 - static_cast<double>(packed.tokens) / room), 100 * packed.pairs));
  }
  if (layers->model.is_recurrent) {
    notes.push_back("recurrent: model '" + layers->model.name +
                    "' works token by token; on GPUs such predictions were twice too fast");
  }
  return notes;
}

// Returns which workers represented which others, by name.
std::vector<ReportedClass> classes_of(const Job& job, const Timeline& timeline) {
  std::vector<ReportedClass> classes;
  for (const WorkerClass& one : timeline.classes) {
    const WorkerSpec& task = job.tasks.at(static_cast<std::size_t>(one.representative));
    classes.push_back({.representative = fmt::format("/job:{}/task:{}", task.job, task.task),
                       .workers = one.workers,
                       .devices = one.workers * task.device_count});
  }
  return classes;
}

// "Intel Xeon (2 cores), NVIDIA H100 x 8": equal machines have equal texts.
std::string machine_text(const Capabilities& capabilities) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const Hardware& hardware : capabilities.hardware) {
    const std::string name =
        hardware.cores == 1 ? hardware.name : fmt::format("{} ({} cores)", hardware.name, hardware.cores);
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
    if (known == kinds.end()) {
      kinds.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [name, count] : kinds) {
    text += (text.empty() ? "" : ", ") + (count == 1 ? name : fmt::format("{} x {}", name, count));
  }
  return text;
}

// Returns the tokens of an example: the rows of a language model's first layer, which is an embedding.
double tokens_of(const Model& model) {
  const bool reads_tokens = model.unit == "sequences" && !model.layers.empty() && model.layers.front().embedding;
  return reads_tokens ? static_cast<double>(model.layers.front().embedding->rows) : 0;
}

// Returns the peak of all GPUs that train in this type; 0 if that of any is unknown. Several CPU devices may share one
// processor, which has no peak of its own for each.
double peak_of(const Job& job, DType dtype) {
  const Scenario& scenario = job.scenario;
  if (!scenario.topology || scenario.devices.type != DeviceType::gpu) return 0;
  std::map<int, double> peaks;  // by machine
  double sum = 0;
  for (int worker = 0; worker < job.workers; ++worker) {
    const WorkerSpec& task = job.tasks.at(static_cast<std::size_t>(worker));
    const auto [known, is_new] = peaks.try_emplace(task.topology_worker, 0);
    if (is_new) {
      for (const NodeIndex node : scenario.topology->nodes_of(task.topology_worker, NodeKind::gpu)) {
        const auto device = scenario.topology->device(node);
        if (!device) return 0;
        const auto peak = device->peak_flops_per_s.find(dtype);
        if (peak == device->peak_flops_per_s.end()) return 0;
        known->second = std::max(known->second, peak->second.value);
      }
    }
    sum += known->second * scenario.devices.per_worker;
  }
  return sum;
}

std::optional<ModelWork> work_of(const Job& job) {
  if (job.layers == nullptr) return std::nullopt;
  const LayersSettings* layers = job.layers;
  constexpr double kFlopsOfMac = 2;
  return ModelWork{.flops_per_unit = kFlopsOfMac * training_macs(layers->model),
                   .tokens_per_unit = tokens_of(layers->model),
                   .devices = static_cast<int>(job.devices),
                   .peak_flops_per_s = peak_of(job, layers->dtype),
                   .dtype = std::string(name_of(layers->dtype))};
}

// Says how far off the prediction may be, and which sizes of collectives were measured.
void add_prediction_facts(Report& report, const Job& job) {
  report.calibrated = calibrated_ranges(job.scenario.topology->facts().collectives);
  const PredictionKind kind = prediction_kind(job, report.cores);
  report.expected_error = error_band_of(kind);
  if (kind.on_gpus && kind.is_layers)
    report.memory_error = error_band_of(PredictionRows{PredictionGroup::device_memory, {}}, kind.figures);
}

void add_measured_facts(Report& report, const Job& job, const Timeline& timeline) {
  if (report.machine_use) report.machine_use->gpus = timeline.gpus;
  if (!report.has_parts()) return;
  report.counts = work_counts(timeline, job.scenario.warmup_steps);
  report.op_time = op_time(timeline, job.scenario.warmup_steps);
}

void append(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

void add_notes_of_topology(Report& report, const Topology& topology) {
  append(report.notes, topology.facts().notes);
  if (report.deterministic && !topology.facts().disturbance().empty()) {
    report.notes.push_back("the topology was measured while disturbed: " + topology.facts().disturbance());
  }
}

// On how many machines the job has a task.
int machines_of(const Job& job) {
  std::set<int> machines;
  for (const WorkerSpec& task : job.tasks) machines.insert(task.topology_worker);
  return static_cast<int>(machines.size());
}

}  // namespace

std::optional<JobPower> power_of(const Job& job) {
  const auto& topology = job.scenario.topology;
  if (!topology || !topology->facts().power_w) return std::nullopt;
  return JobPower{.of_machine_w = *topology->facts().power_w, .machines = machines_of(job)};
}

std::optional<JobPrice> price_of(const Job& job) {
  const Scenario& scenario = job.scenario;
  if (!scenario.topology || !scenario.topology->facts().price) return std::nullopt;
  const bool has_rows = job.mlp != nullptr && job.mlp->rows != nullptr;
  const auto epoch = job.layers != nullptr ? job.layers->epoch
                     : has_rows            ? std::int64_t{training_rows(*job.mlp->rows)}
                                           : 0;
  return JobPrice{.per_hour = scenario.topology->facts().price->per_hour,
                  .currency = scenario.topology->facts().price->currency,
                  .machines = machines_of(job),
                  .units_per_epoch = static_cast<double>(epoch)};
}

Report merged(const std::vector<TrainingResult>& results, const Job& job) {
  Report report = results.front().report;
  report.workers = job.workers;
  report.parameter_servers = job.servers;
  if (!report.asynchronous) return report;
  report.replicas *= report.workers;
  Staleness all;
  for (const TrainingResult& result : results) {
    all.updates += result.staleness.updates;
    all.sum += result.staleness.sum;
    all.maximum = std::max(all.maximum, result.staleness.maximum);
  }
  report.metrics["staleness_mean"] = all.mean();
  report.metrics["staleness_max"] = static_cast<double>(all.maximum);
  return report;
}

void add_facts(Report& report, const Job& job, const Capabilities& capabilities, const Timeline& timeline,
               Figures figures) {
  const Scenario& scenario = job.scenario;
  report.scenario = scenario.name;
  report.scenario_hash = scenario.hash;
  report.engine = capabilities.engine;
  report.strategy = scenario.strategy.name;
  report.devices = static_cast<int>(job.devices);
  report.topology = scenario.topology ? scenario.topology->name() : "this machine";
  report.topology_provenance = scenario.topology ? std::string(name_of(scenario.topology->provenance())) : "measured";
  report.steps = scenario.steps;
  report.warmup_steps = scenario.warmup_steps;
  report.deterministic = capabilities.deterministic;
  if (!report.deterministic) {
    report.machine = machine_text(capabilities);
    report.system = system_text(timeline.settings);
  }
  report.units_per_step = scenario.workload.batch;
  report.records = scenario.engine.records;
  report.summary = summarize(timeline, scenario.warmup_steps, report.asynchronous ? Pace::each_its_own : Pace::in_step,
                             report.records, figures);
  report.work = work_of(job);
  report.price = price_of(job);
  report.power = power_of(job);
  report.classes = classes_of(job, timeline);
  report.settings = timeline.settings;
  const StrategyValues own = with_usual_values(job.strategy.name, job.strategy.keys, scenario.strategy.own);
  for (const auto& [key, value] : own.all()) {
    report.settings["strategy." + key] = value_text(value);
  }
  report.notes = timeline.notes;
  if (scenario.topology) add_notes_of_topology(report, *scenario.topology);
  if (scenario.engine.records != RecordLevel::all) {
    report.notes.push_back(fmt::format(
        "records: {} only, so the report has no times of {}", name_of(scenario.engine.records),
        scenario.engine.records == RecordLevel::collectives ? "ops and copies" : "ops, copies and collectives"));
  }
  append(report.notes, notes_of_workload(job));
  report.cores = shared_cores(job, capabilities);
  if (job.models_machine) add_prediction_facts(report, job);
  if (!report.deterministic) add_measured_facts(report, job, timeline);
  append(report.notes, notes_of_shared_gpus(job, capabilities));
}

// A run whose workers represent others does not see which links these use.
void add_notes(Report& report, const Job& job, const Timeline& timeline) {
  append(report.notes, job.scenario.notes);
  UnusedKeys unused;
  find_unused_keys(job, report, timeline, unused);
  if (job.models_machine) {
    const Topology& topology = *job.scenario.topology;
    const Consulted& seen = timeline.consulted;
    find_unused_keys(topology, may_have_representatives(job) ? with_links_of(topology, seen) : seen, unused);
  }
  append(report.notes, unused.notes());
}

}  // namespace tandem
