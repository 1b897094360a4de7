#include "scenarios/sweep/sweep_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "scenarios/reading/condition_words.h"
#include "scenarios/reading/content_hash.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/scenario/named_files.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostTried = 10'000'000;  // combinations of the first fields, and of all
constexpr std::size_t kMostPoints = 100'000;
constexpr const char* kTopologyWorkers = "topology.cluster.workers";

// A null value (`~`) leaves the field out.
YamlDocument::Change change_to(const SweepAxis& axis, std::size_t value) {
  const YamlNode* node = axis.values[value];
  return {axis.path, node->kind == YamlKind::null ? nullptr : node};
}

std::vector<std::string> known_names() {
  std::vector<std::string> names{"devices"};
  for (const ConditionWord& word : condition_words()) names.emplace_back(word.name);
  return names;
}

void add_files(const YamlNode& value, const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code ignored;
  if (value.kind == YamlKind::scalar && is_file_name(value.text) && fs::is_regular_file(folder / value.text, ignored)) {
    files.push_back(folder / value.text);
  }
  for (const YamlNode* item : value.items) add_files(*item, folder, files);
  for (const YamlNode::Entry& entry : value.entries) add_files(*entry.value, folder, files);
}

// Returns what a scenario says of the first fraction in a range, if its field needs whole numbers. Lists are not
// checked: their values were written one by one, and a wrong one is a row of the result.
std::optional<Diagnostic> problem_of_fractions(const Scenario& base, const SweepAxis& axis, SharedParts& parts) {
  const auto is_fraction = [](const YamlNode* value) { return value->text.find_first_of(".e") != std::string::npos; };
  const auto fraction = std::find_if(axis.values.begin(), axis.values.end(), is_fraction);
  if (!axis.is_range || fraction == axis.values.end()) return std::nullopt;
  const std::vector<YamlDocument::Change> changes{{"sweep", nullptr}, {axis.path, *fraction}};
  try {
    read_scenario_document(YamlDocument::changed(base.document, changes), parts);
  } catch (const InputError& error) {
    for (const Diagnostic& problem : error.diagnostics()) {
      if (problem.path == axis.path && problem.message.find("whole number") != std::string::npos) return problem;
    }
  }
  return std::nullopt;
}

}  // namespace

SweepSpace::SweepSpace(const Scenario& base) : base_(base), sweep_(*base.sweep) {
  check_fields();
  for (const SweepCondition& condition : sweep_.where) {
    Check check{.condition = &condition, .names = {}};
    for (const std::string& name : condition.condition.names()) {
      check.names.push_back(meaning_of(name, condition));
      check.axes = std::max(check.axes, check.names.back().axes);
    }
    checks_.push_back(std::move(check));
  }
}

// Tries one value of each field, which is enough to see whether the field exists, and one fraction of each range.
void SweepSpace::check_fields() const {
  SharedParts parts = this->parts();
  Diagnostics problems;
  for (const SweepAxis& axis : sweep_.axes) {
    const std::vector<YamlDocument::Change> changes{{"sweep", nullptr}, change_to(axis, 0)};
    problems.add(unknown_keys_of(YamlDocument::changed(base_.document, changes), parts));
    if (const auto problem = problem_of_fractions(base_, axis, parts)) problems.add(*problem);
  }
  problems.throw_if_any();
}

void SweepSpace::fail(const SweepCondition& in, const std::string& message) const {
  std::string text = fmt::format("'{}': {}", in.condition.text(), message);
  if (base_.document) throw InputError({base_.document->problem_at(in.line, in.column, in.path, std::move(text))});
  throw InputError({{base_.file, in.line, in.column, in.path, std::move(text)}});
}

bool SweepSpace::is_swept(const std::string& path) const {
  return std::any_of(sweep_.axes.begin(), sweep_.axes.end(),
                     [&](const SweepAxis& axis) { return axis.path == path || path.starts_with(axis.path + "."); });
}

// Returns the values of an axis, or of their field `rest`.
SweepSpace::Meaning SweepSpace::by_axis(std::size_t axis, const std::string& rest, const SweepCondition& in) const {
  std::vector<ConditionValue> values;
  for (const YamlNode* value : sweep_.axes[axis].values) {
    const YamlNode* node = node_at(*value, rest);
    if (node == nullptr || node->kind != YamlKind::scalar) {
      fail(in, fmt::format("'{}' of '{}' is no number and no word", rest.empty() ? sweep_.axes[axis].path : rest,
                           text_of(*value)));
    }
    values.push_back(condition_value(node->text));
  }
  return {axis + 1, [axis, values](const Point& point) { return values[point[axis]]; }};
}

SweepSpace::Meaning SweepSpace::meaning_of_path(const std::string& path, const std::string& name,
                                                const SweepCondition& in) const {
  for (std::size_t i = 0; i < sweep_.axes.size(); ++i) {
    const std::string& swept = sweep_.axes[i].path;
    if (swept == path) return by_axis(i, "", in);
    if (path.starts_with(swept + ".")) return by_axis(i, path.substr(swept.size() + 1), in);
  }
  const YamlNode* node = node_at(base_.document->root(), path);
  if (node != nullptr && node->kind == YamlKind::scalar) {
    return {0, [value = condition_value(node->text)](const Point&) { return value; }};
  }
  const ConditionWord* word = find_condition_word(path);
  if (word == nullptr || word->usual == nullptr) {
    fail(in, fmt::format("'{}' has no value: the scenario does not state {}, and the sweep neither", name, path));
  }
  return {0, [value = word->usual(base_)](const Point&) { return value; }};
}

// If a scenario does not state its workers, each machine of its topology is one.
SweepSpace::Meaning SweepSpace::workers_of_topology(const SweepCondition& in) const {
  if (is_swept(kTopologyWorkers)) return meaning_of_path(kTopologyWorkers, "workers", in);
  return meaning_of_path("devices.workers", "workers", in);
}

SweepSpace::Meaning SweepSpace::devices_of_points(const SweepCondition& in) const {
  const Meaning workers = meaning_of("workers", in), replicas = meaning_of("replicas", in);
  const auto number = [](const ConditionValue& value) {
    const auto* found = std::get_if<double>(&value);
    return found != nullptr ? *found : 0;
  };
  return {std::max(workers.axes, replicas.axes), [=](const Point& point) -> ConditionValue {
            return number(workers.value(point)) * number(replicas.value(point));
          }};
}

SweepSpace::Meaning SweepSpace::meaning_of(const std::string& name, const SweepCondition& in) const {
  if (name == "devices") return devices_of_points(in);
  const ConditionWord* word = find_condition_word(name);
  const std::string path = word != nullptr ? word->path : name;
  const bool is_stated = is_swept(path) || node_at(base_.document->root(), path) != nullptr;
  if (path == "devices.workers" && !is_stated) return workers_of_topology(in);
  if (path == "devices.per_worker" && !is_stated && is_swept("topology.cluster.node")) {
    fail(in, "write devices.per_worker, since the machines of the sweep may have different numbers of devices");
  }
  if (word == nullptr && name.find('.') == std::string::npos) {
    const std::vector<std::string> known = known_names();
    const std::string near = nearest_name(name, known);
    fail(in, fmt::format("unknown name '{}' (one of {}, or a field such as workload.sizes.layers){}", name,
                         fmt::join(known, ", "), near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  return meaning_of_path(path, name, in);
}

bool SweepSpace::holds(const Check& check, const Point& point) const {
  try {
    return check.condition->condition.holds([&](std::size_t name) { return check.names[name].value(point); });
  } catch (const ConditionError& error) {
    fail(*check.condition, fmt::format("at character {}: {}", error.where() + 1, error.what()));
  }
}

// Adds the combinations that begin as `point` does.
void SweepSpace::add_points(Point& point, std::vector<Point>& points, std::int64_t& tried) const {
  if (++tried > kMostTried) {
    throw InputError({base_.problem_at(
        "sweep.where", fmt::format("leaves too many combinations open: {} were tried; name the fields with conditions "
                                   "first, or narrow the sweep",
                                   kMostTried))});
  }
  for (const Check& check : checks_) {
    if (check.axes == point.size() && !holds(check, point)) return;
  }
  if (point.size() == sweep_.axes.size()) {
    if (points.size() == kMostPoints) {
      throw InputError({base_.problem_at("sweep", fmt::format("has more than {} points; narrow it", kMostPoints))});
    }
    points.push_back(point);
    return;
  }
  const std::size_t values = sweep_.axes[point.size()].values.size();
  for (std::uint32_t i = 0; i < values; ++i) {
    point.push_back(i);
    add_points(point, points, tried);
    point.pop_back();
  }
}

std::vector<SweepSpace::Point> SweepSpace::points() const {
  std::vector<Point> points;
  Point point;
  std::int64_t tried = 0;
  add_points(point, points, tried);
  if (points.empty()) {
    double combinations = 1;
    for (const SweepAxis& axis : sweep_.axes) combinations *= static_cast<double>(axis.values.size());
    throw InputError({base_.problem_at(
        "sweep.where", fmt::format("none of the {:.4g} combinations meets the conditions", combinations))});
  }
  return points;
}

std::vector<std::string> SweepSpace::fields() const {
  std::vector<std::string> fields;
  for (const SweepAxis& axis : sweep_.axes) fields.push_back(axis.path);
  return fields;
}

SweepSpace::Values SweepSpace::values(const Point& point) const {
  Values values;
  for (std::size_t i = 0; i < point.size(); ++i) {
    values.emplace_back(sweep_.axes[i].path, text_of(*sweep_.axes[i].values[point[i]]));
  }
  return values;
}

std::string SweepSpace::files_hash(const Point& point) const {
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < point.size(); ++i) {
    add_files(*sweep_.axes[i].values[point[i]], fs::path(base_.file).parent_path(), files);
  }
  if (files.empty()) return "";
  std::string all;
  for (const fs::path& file : files) all += read_input_file(file);
  return text_hash(all);
}

SharedParts SweepSpace::parts() const {
  return base_.parts ? *base_.parts : SharedParts();
}

Scenario SweepSpace::scenario(const Point& point, SharedParts& parts) const {
  std::vector<std::size_t> all(point.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return variant(point, all, parts);
}

Scenario SweepSpace::variant(const Point& point, const std::vector<std::size_t>& fields, SharedParts& parts) const {
  std::vector<YamlDocument::Change> changes{{"sweep", nullptr}};
  for (const std::size_t field : fields) changes.push_back(change_to(sweep_.axes[field], point[field]));
  return read_scenario_document(YamlDocument::changed(base_.document, changes), parts);
}

}  // namespace tandem
