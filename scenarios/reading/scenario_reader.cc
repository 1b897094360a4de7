#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "scenarios/faults/faults_reader.h"
#include "scenarios/reading/content_hash.h"
#include "scenarios/reading/evaluation_reader.h"
#include "scenarios/reading/machine_reader.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/reading/scenario_rules.h"
#include "scenarios/reading/strategy_reader.h"
#include "scenarios/reading/sweep_settings.h"
#include "scenarios/reading/workload_reader.h"
#include "strategies/parallel/layout/layer_division.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSteps = 10'000'000;

void check_schema_version(const YamlReader& version) {
  const std::int64_t value = version.whole_number(1, std::numeric_limits<std::int64_t>::max(), 1);
  if (value > 1) version.error(fmt::format("schema version {} is newer than this tandem reads (1)", value));
}

// Returns the name of a scenario that states none.
std::string name_of_file(const std::string& file) {
  return file == kStandardInput ? "stdin" : fs::path(file).stem().string();
}

class ScenarioReader {
 public:
  // `topology`: instead of the document's; may be null.
  ScenarioReader(std::shared_ptr<const YamlDocument> document, SharedParts& parts,
                 std::shared_ptr<const Topology> topology, Diagnostics& problems)
      : problems_(problems), root_(*document, problems), parts_(parts) {
    scenario_.file = document->file();
    scenario_.document = std::move(document);
    scenario_.topology = std::move(topology);
  }

  // finish() reports the keys that mean nothing.
  void read() {
    check_schema_version(root_.required("schema_version"));
    scenario_.name = root_.optional("name").text(name_of_file(scenario_.file));
    scenario_.description = root_.optional("description").text();
    read_notes("assumed", "assumed: ");
    read_notes("left_out", "not modelled: ");
    scenario_.workload = read_workload(root_.required("workload"), folder(), parts_);
    scenario_.strategy = read_strategy(root_.optional("strategy"));
    auto* const layers = std::get_if<LayersSettings>(&scenario_.workload.kind);
    if (layers != nullptr && scenario_.strategy.mesh.expert_tensor == 1) keep_experts_whole(layers->model);
    scenario_.engine = read_engine(root_.optional("engine"));
    const YamlReader topology = root_.optional("topology");
    if (!scenario_.topology) read_topology_value(topology, parts_, scenario_);
    read_devices(root_.optional("devices"), scenario_);
    scenario_.steps = root_.required("steps").integer(1, kMostSteps, kMostSteps);
    scenario_.warmup_steps = root_.optional("warmup_steps").integer(0, kMostSteps, 0);
    scenario_.evaluation = read_evaluation(root_.optional("evaluation"), scenario_);
    check_rules(scenario_, problems_);
    read_expectations(root_.optional("expect"));
    const YamlReader faults = root_.optional("faults"), recovery = root_.optional("recovery");
    if (problems_.empty()) scenario_.faults = read_faults(faults, recovery, scenario_, folder());
    scenario_.sweep = read_sweep(root_.optional("sweep"), *scenario_.document);
  }
  void finish() { root_.finish(); }
  Scenario take() { return std::move(scenario_); }

 private:
  // Sentences that a report repeats.
  void read_notes(const char* key, const char* before) {
    const YamlReader sentences = root_.optional(key);
    if (!sentences) return;
    for (const YamlReader& sentence : sentences.list()) scenario_.notes.push_back(before + sentence.text());
  }

  fs::path folder() const { return fs::path(scenario_.file).parent_path(); }

  void read_expectations(const YamlReader& map) {
    Expectations& expect = scenario_.expect;
    const YamlReader accuracy = map.optional("min_test_accuracy");
    const YamlReader loss = map.optional("max_final_loss");
    if (accuracy) expect.min_test_accuracy = accuracy.number({.least = 0, .most = 1});
    if (loss) expect.max_final_loss = loss.number({.above = 0});
    for (const YamlReader* which : {&accuracy, &loss}) {
      const YamlReader& value = *which;
      const auto* layers = std::get_if<LayersSettings>(&scenario_.workload.kind);
      if (value && layers != nullptr && (!layers->learning || &value == &accuracy)) {
        value.error("a workload of kind 'layers' computes no losses and predictions");
      } else if (value && scenario_.engine.values == ValueMode::none) {
        value.error("needs values: real");
      }
    }
    if (const YamlReader time = map.optional("max_step_time"))
      expect.max_step_time_s = time.quantity(Dimension::seconds);
    if (const YamlReader rate = map.optional("min_throughput")) expect.min_throughput = rate.number_within(kRates);
    if (const YamlReader share = map.optional("max_exposed_communication")) {
      expect.max_exposed_communication = share.number({.least = 0, .most = 1});
    }
  }

  Diagnostics& problems_;
  YamlReader root_;
  SharedParts& parts_;
  Scenario scenario_;
};

// Instead of a message for every key that a scenario does not have.
void refuse_stored_result(const YamlDocument& document) {
  const auto& entries = document.root().entries;
  const auto kind = std::ranges::find(entries, "kind", &YamlNode::Entry::key);
  if (kind == entries.end() || std::ranges::find(entries, "tandem_version", &YamlNode::Entry::key) == entries.end())
    return;
  throw InputError({document.problem_at(kind->line, kind->column, "kind",
                                        fmt::format("a stored result of kind '{}', and no scenario; `tandem report` "
                                                    "shows it, and `tandem compare` takes two stored runs",
                                                    kind->value->text))});
}

YamlDocument with_settings(YamlDocument document, const std::vector<ScenarioSetting>& settings) {
  if (settings.empty()) return document;
  return with_settings(std::make_shared<const YamlDocument>(std::move(document)), settings);
}

Scenario read_hashed(YamlDocument document, const std::vector<ScenarioSetting>& settings,
                     const std::shared_ptr<const SharedParts>& known) {
  auto parts = known ? std::make_shared<SharedParts>(*known) : std::make_shared<SharedParts>();
  Scenario scenario = read_scenario_document(with_settings(std::move(document), settings), *parts);
  scenario.hash = content_hash(scenario);
  scenario.parts = std::move(parts);
  return scenario;
}

}  // namespace

YamlDocument with_settings(std::shared_ptr<const YamlDocument> document, const std::vector<ScenarioSetting>& settings) {
  std::vector<YamlDocument::Setting> of_document;
  for (const ScenarioSetting& one : settings) of_document.push_back({one.name, one.path, one.value});
  return YamlDocument::with_settings(std::move(document), of_document);
}

Scenario changed_scenario(const Scenario& given, const std::vector<ScenarioSetting>& settings) {
  return read_hashed(with_settings(given.document, settings), {}, given.parts);
}

Scenario read_scenario_document(YamlDocument parsed, SharedParts& parts, std::shared_ptr<const Topology> topology) {
  refuse_stored_result(parsed);
  Diagnostics problems;
  auto document = std::make_shared<const YamlDocument>(std::move(parsed));
  ScenarioReader reader(document, parts, std::move(topology), problems);
  reader.read();
  reader.finish();
  parts.settle(problems.empty());
  problems.throw_if_any();
  return reader.take();
}

Diagnostics unknown_keys_of(YamlDocument parsed, SharedParts& parts) {
  Diagnostics problems;
  auto document = std::make_shared<const YamlDocument>(std::move(parsed));
  ScenarioReader reader(document, parts, nullptr, problems);
  reader.read();
  problems = {};
  reader.finish();
  parts.settle(false);
  return problems;
}

Scenario load_scenario(const fs::path& path, const std::vector<ScenarioSetting>& settings) {
  return read_hashed(YamlDocument::load(path), settings, nullptr);
}

Scenario parse_scenario(std::string_view text, const std::string& file, const std::vector<ScenarioSetting>& settings,
                        const std::shared_ptr<const SharedParts>& parts) {
  return read_hashed(YamlDocument::parse(text, file), settings, parts);
}

}  // namespace tandem
