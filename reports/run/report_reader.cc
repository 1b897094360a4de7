// Reads a report back from JSON.
#include "reports/base/json_fields.h"
#include "reports/course/course_json.h"
#include "reports/errors/known_errors.h"
#include "reports/run/evaluations_json.h"
#include "reports/run/memory_json.h"
#include "reports/run/model_work_json.h"
#include "reports/run/report_json.h"
#include "topologies/base/strict_yaml.h"  // read_input_file

namespace tandem {
namespace {

void read_workers(const JsonField& root, std::vector<WorkerSummary>& workers) {
  for (const JsonField& item : root.optional("worker_step_time_ns").items()) {
    workers.push_back({.step_time = step_time_from_json(item), .per_step = {}});
  }
  auto worker = workers.begin();
  for (const JsonField& item : root.optional("worker_per_step_ns").items()) {
    if (worker != workers.end()) (worker++)->per_step = per_step_from_json(item);
  }
}

CallShare read_call_share(const JsonField& map) {
  return {.rank = map.required("rank").small_count(),
          .waiting = map.required("waiting_ns").count(),
          .transfer = map.required("transfer_ns").count()};
}

CollectiveSummary read_collective(const JsonField& map) {
  CollectiveSummary collective{
      .operation = map.required("operation").text(),
      .bytes = map.required("bytes").count(),
      .devices = map.required("devices").small_count(),
      .calls_per_step = map.required("calls_per_step").small_count(),
      .time_ns = map.required("time_ns").count(),
      .algbw = map.required("algbw").number_or_null(),
      .busbw = map.required("busbw").number_or_null(),
      .algorithm = map.optional("algorithm").present() ? map.optional("algorithm").text() : ""};
  if (const JsonField waiting = map.optional("waiting_ns"); waiting.present()) collective.waiting_ns = waiting.count();
  for (const JsonField& share : map.optional("ranks").items()) collective.ranks.push_back(read_call_share(share));
  return collective;
}

RecordLevel record_level_of(const JsonField& field) {
  const std::string word = field.text();
  for (const RecordLevel level : {RecordLevel::all, RecordLevel::collectives, RecordLevel::steps}) {
    if (word == name_of(level)) return level;
  }
  field.error("is '" + word + "'; expected all, collectives or steps");
  return RecordLevel::all;
}

RankWaiting read_rank(const JsonField& map) {
  // Earlier versions counted transfers between two ranks as well, in which a stage of a pipeline waits for its input.
  const JsonField group_waiting = map.optional("group_waiting_ns");
  return {.device = map.required("device").text(),
          .devices = map.required("devices").small_count(),
          .waiting = group_waiting.present() ? group_waiting.count() : map.required("waiting_ns").count(),
          .transfer = map.required("transfer_ns").count(),
          .caused = map.required("caused_ns").count(),
          .comes_last = map.required("comes_last").number()};
}

CriticalPath read_critical_path(const JsonField& map) {
  return {.step = map.required("step").small_count(),
          .compute = map.required("compute").count(),
          .update = map.required("update").count(),
          .input = map.required("input").count(),
          .communication = map.required("communication").count(),
          .other = map.required("other").count(),
          .idle = map.required("idle").count(),
          .begins_on = map.required("begins_on").text(),
          .ends_on = map.required("ends_on").text()};
}

// Earlier versions wrote a number, the error of predictions, or null.
ErrorBand read_band(const JsonField& intervals, const JsonField& basis) {
  ErrorBand band{.intervals = {}, .basis = basis.text()};
  if (intervals.is_number()) {
    band.intervals = {interval_of_error(intervals.number())};
  } else if (!intervals.is_null()) {
    band.intervals = intervals_from_json(intervals);
  }
  return band;
}

Expectation read_expectation(const JsonField& map) {
  Expectation expectation{.topology = map.required("topology").text(),
                          .step_time = map.required("step_time_ns").count(),
                          .band = read_band(map.required("band"), map.required("basis")),
                          .largest = {}};
  if (const JsonField term = map.required("largest_term"); !term.is_null()) {
    expectation.largest = GapTerm{.name = term.required("name").text(), .time = term.required("time_ns").integer()};
  }
  return expectation;
}

ReportedClass read_class(const JsonField& map) {
  return {.representative = map.required("representative").text(),
          .workers = map.required("workers").small_count(),
          .devices = map.required("devices").small_count()};
}

GpuUse read_gpu_use(const JsonField& map) {
  GpuUse use{.gpu = map.required("gpu").text(),
             .readings = map.required("readings").small_count(),
             .slowed = map.required("slowed").small_count(),
             .slowed_by = {},
             .power_limited = map.required("power_limited").small_count(),
             .other_programs = map.required("other_programs").small_count(),
             .others_share = map.required("others_share").number()};
  for (const JsonField& reason : map.required("slowed_by").items()) use.slowed_by.push_back(reason.text());
  return use;
}

WorkCounts read_work(const JsonField& map) {
  WorkCounts counts;
  for (const auto& [name, count] : map.entries()) counts[name] = count.whole_number();
  return counts;
}

MachineUse read_machine_use(const JsonField& map) {
  MachineUse use{.cores = map.required("cores").small_count(),
                 .time = map.required("time_ns").count(),
                 .own = map.required("own_ns").count(),
                 .waited = map.required("waited_ns").count(),
                 .others = map.required("others_ns").count(),
                 .stolen = map.required("stolen_ns").count(),
                 .involuntary_switches = map.required("involuntary_switches").count()};
  std::size_t reading = 0;
  for (const JsonField& hertz : map.optional("frequency_hz").items()) {
    if (reading < use.frequency_hz.size()) use.frequency_hz[reading++] = hertz.number();
  }
  for (const JsonField& gpu : map.optional("gpus").items()) use.gpus.push_back(read_gpu_use(gpu));
  return use;
}

CalibratedRange read_calibrated(const JsonField& map) {
  return {.operation = map.required("operation").text(),
          .devices = map.required("devices").small_count(),
          .nodes = map.required("nodes").small_count(),
          .from_bytes = map.required("from_bytes").count(),
          .to_bytes = map.required("to_bytes").count(),
          .from = map.required("from_ns").count(),
          .to = map.required("to_ns").count()};
}

void read_identity(const JsonField& root, Report& report) {
  report.tandem_version = root.required("tandem_version").text();
  report.scenario = root.required("scenario").text();
  report.scenario_hash = root.required("scenario_hash").text();
  report.engine = root.required("engine").text();
  report.deterministic = root.required("deterministic").boolean();
  const JsonField topology = root.required("topology");
  report.topology = topology.required("name").text();
  report.topology_provenance = topology.required("provenance").text();
  if (const JsonField machine = root.optional("machine"); machine.present()) report.machine = machine.text();
  if (const JsonField system = root.optional("system"); system.present()) report.system = system.text();
  report.strategy = root.required("strategy").text();
  report.cross_device_ops = root.required("cross_device_ops").text();
  report.replicas = root.required("replicas").positive_count();
  // Not in reports of earlier versions, which ran on one worker.
  if (const JsonField workers = root.optional("workers"); workers.present()) report.workers = workers.positive_count();
  if (const JsonField devices = root.optional("devices"); devices.present()) report.devices = devices.positive_count();
  if (const JsonField servers = root.optional("parameter_servers"); servers.present())
    report.parameter_servers = servers.small_count();
  if (const JsonField pace = root.optional("asynchronous"); pace.present()) report.asynchronous = pace.boolean();
  report.steps = root.required("steps").small_count();
  report.warmup_steps = root.required("warmup_steps").small_count();
  if (const JsonField records = root.optional("records"); records.present()) report.records = record_level_of(records);
}

// Texts and pages look up the names of ranks. Documents of earlier versions may lack all of them.
void check_ranks(const JsonField& root, Summary& summary) {
  for (CollectiveSummary& collective : summary.collectives) {
    if (summary.ranks.empty()) collective.ranks.clear();
    for (const CallShare& share : collective.ranks) {
      if (static_cast<std::size_t>(share.rank) < summary.ranks.size()) continue;
      root.required("collectives").error("have a rank that is not among `ranks`");
    }
  }
}

void read_results(const JsonField& root, Report& report) {
  for (const JsonField& item : root.optional("symmetry").items()) report.classes.push_back(read_class(item));
  report.summary.step_time = step_time_from_json(root.required("step_time_ns"));
  read_workers(root, report.summary.workers);
  const JsonField throughput = root.required("throughput");
  report.throughput_unit = throughput.required("unit").text();
  report.units_per_step = throughput.required("units_per_step").number_or_null();
  if (report.has_parts()) report.summary.per_step = per_step_from_json(root.required("per_step_ns"));
  if (const JsonField others = root.optional("other_devices_ns"); others.present()) {
    report.summary.other_devices = OtherDevices{.busiest = others.required("busiest").text(),
                                                .count = others.required("count").small_count(),
                                                .per_step = per_step_from_json(others)};
  }
  for (const JsonField& item : root.required("collectives").items()) {
    report.summary.collectives.push_back(read_collective(item));
  }
  for (const JsonField& item : root.optional("calibrated").items()) report.calibrated.push_back(read_calibrated(item));
  for (const JsonField& item : root.optional("ranks").items()) report.summary.ranks.push_back(read_rank(item));
  check_ranks(root, report.summary);
  if (const JsonField path = root.optional("critical_path_ns"); path.present()) {
    report.summary.critical_path = read_critical_path(path);
  }
  if (const JsonField expected = root.optional("expectation"); expected.present()) {
    report.expectation = read_expectation(expected);
  }
  if (const JsonField error = root.optional("expected_error"); error.present()) {
    const JsonField before = error.optional("relative");  // of an earlier version
    report.expected_error = read_band(before.present() ? before : error.required("intervals"), error.required("basis"));
  }
  for (const JsonField& item : root.optional("faults").items()) report.faults.push_back(item.text());
  if (const JsonField evaluations = root.optional("evaluations"); evaluations.present())
    report.evaluations = evaluations_from_json(evaluations);
  if (const JsonField job = root.optional("job"); job.present()) report.course = course_from_json(job);
  const JsonField efficiency = root.optional("scaling_efficiency");
  if (efficiency.present()) report.scaling_efficiency = efficiency.number_or_null();
  for (const JsonField& item : root.optional("loss").items()) report.loss.push_back(item.number_or_null());
  for (const auto& [name, value] : root.optional("metrics").entries()) report.metrics[name] = value.number_or_null();
  for (const auto& [name, value] : root.optional("settings").entries()) report.settings[name] = value.text();
  if (const JsonField error = root.optional("memory_expected_error"); error.present())
    report.memory_error = read_band(error.required("intervals"), error.required("basis"));
  report.assumptions = assumptions_from_json(root.optional("assumptions"));
  if (const JsonField memory = root.optional("memory_bytes"); memory.present()) {
    report.memory = memory_from_json(memory);
  }
  read_work_and_price(root, report);
  if (const JsonField work = root.optional("work_counts"); work.present()) report.counts = read_work(work);
  report.op_time = root.optional("op_time_ns").count();
  if (const JsonField cores = root.optional("cores"); cores.present()) {
    report.cores = SharedCores{.devices = cores.required("devices").positive_count(),
                               .cores = cores.required("cores").positive_count()};
  }
  if (const JsonField use = root.optional("machine_use"); use.present()) {
    report.machine_use = read_machine_use(use);
  }
  for (const JsonField& item : root.optional("notes").items()) report.notes.push_back(item.text());
}

// Returns whether the document is a report, whose other fields can be read.
bool check_kind(const JsonField& root) {
  bool is_report = true;
  const JsonField kind = root.required("kind");
  if (const std::string word = kind.text(); kind.present() && word != "report") {
    kind.error("is '" + word + "'; expected a report, as `tandem run --json` writes it");
    is_report = false;
  }
  const JsonField schema_version = root.required("schema_version");
  const std::int64_t schema = schema_version.whole_number();
  if (schema_version.is_count() && schema != kReportSchemaVersion) {
    schema_version.error("version " + std::to_string(schema) + " is not known; this Tandem reads version " +
                         std::to_string(kReportSchemaVersion));
    is_report = false;
  }
  return is_report && kind.present() && schema_version.is_count();
}

}  // namespace

std::optional<LongSteps> long_steps_from_json(const JsonField& field) {
  if (!field.present()) return std::nullopt;
  const JsonField every = field.optional("every");
  return LongSteps{.count = field.required("count").small_count(),
                   .time = field.required("time_ns").count(),
                   .others = field.required("others_ns").count(),
                   .every = every.present() ? every.small_count() : 0};
}

StepTime step_time_from_json(const JsonField& field) {
  const Nanoseconds median = field.required("median").count();
  const JsonField mean = field.optional("mean");  // earlier versions had none: their parts add up to the median
  return {.mean = mean.present() ? mean.count() : median,
          .median = median,
          .min = field.required("min").count(),
          .p95 = field.required("p95").count(),
          .median_absolute_deviation = field.required("mad").count(),
          .samples = field.required("samples").small_count(),
          .long_steps = long_steps_from_json(field.optional("long_steps")),
          .has_mean = mean.present()};
}

PerStep per_step_from_json(const JsonField& field) {
  PerStep per_step;
  for (const auto& [name, time] : step_figures()) per_step.*time = field.required(name).count();
  return per_step;
}

Report report_from_json(std::string_view text, const std::string& file) {
  const JsonOrigin origin(file, text);
  const JsonField::Json document = origin.parse();
  return report_from_document(document, origin);
}

Report report_from_document(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  Report report = report_from_field(reading.root());
  reading.finish();
  return report;
}

Report report_from_field(const JsonField& field) {
  Report report;
  if (!check_kind(field)) return report;
  read_identity(field, report);
  read_results(field, report);
  return report;
}

void check_parts_add_up(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const Report report = report_from_field(reading.root());
  reading.finish();
  const Nanoseconds step = report.summary.step_time.mean;
  Nanoseconds sum = 0;
  for (const StepPart& part : step_parts()) sum += report.summary.per_step.*part.time;
  if (sum == step || !report.has_parts()) return;
  reading.root()
      .required("per_step_ns")
      .error("its parts add up to " + std::to_string(sum) + " ns, but the mean of step_time_ns is " +
             std::to_string(step) + " ns; was the document edited?");
  reading.finish();
}

Report load_report(const std::filesystem::path& path) {
  return report_from_json(read_input_file(path, kMostDocumentBytes), path.string());
}

}  // namespace tandem
