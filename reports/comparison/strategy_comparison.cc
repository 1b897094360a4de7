#include "reports/comparison/strategy_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

class Errors {
 public:
  void add(double error) {
    sum_ += std::abs(error);
    summary_.worst = std::max(summary_.worst, std::abs(error));
    summary_.mean = sum_ / static_cast<double>(++summary_.count);
  }
  const ErrorSummary& summary() const { return summary_; }

 private:
  ErrorSummary summary_;
  double sum_ = 0;
};

std::string devices_text(int devices) {
  return fmt::format("{} device{}", devices, devices == 1 ? "" : "s");
}

// Adds the pairs of a comparison with those after it.
void add_pairs(const std::vector<Comparison>& comparisons, const std::vector<std::string>& labels, std::size_t first,
               StrategySummary& summary) {
  const Comparison& a = comparisons[first];
  for (std::size_t i = first + 1; i < comparisons.size(); ++i) {
    const Comparison& b = comparisons[i];
    if (b.is_disturbed() || a.measured.devices != b.measured.devices) continue;
    const ComparedFigure &one = a.figure("step_time"), &other = b.figure("step_time");
    const double noise = a.noise * one.measured + b.noise * other.measured;
    if (std::abs(one.measured - other.measured) <= noise) continue;
    ++summary.pairs;
    if ((one.measured < other.measured) == (one.predicted < other.predicted)) continue;
    const bool is_first_faster = one.predicted < other.predicted;
    summary.reversed.push_back(fmt::format("{} before {} on {}", labels[is_first_faster ? first : i],
                                           labels[is_first_faster ? i : first], devices_text(a.measured.devices)));
  }
}

std::string errors_text(const ErrorSummary& errors) {
  return fmt::format("mean {}, worst {}", percent_text(errors.mean), percent_text(errors.worst));
}

std::string runs_text(const ErrorSummary& errors) {
  return fmt::format("in {} run{}", errors.count, errors.count == 1 ? "" : "s");
}

}  // namespace

void sort_by_time(std::vector<Comparison>& comparisons) {
  std::ranges::stable_sort(comparisons, {}, [](const Comparison& one) {
    return std::pair(one.measured.devices, one.measured.summary.step_time.mean);
  });
}

std::vector<std::string> strategy_labels(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> labels;
  for (const Comparison& one : comparisons) {
    const Report& report = one.measured;
    const bool has_others = std::ranges::any_of(comparisons, [&](const Comparison& other) {
      return other.measured.strategy == report.strategy && other.measured.devices == report.devices &&
             other.measured.cross_device_ops != report.cross_device_ops;
    });
    labels.push_back(has_others ? report.strategy + ", " + report.cross_device_ops : report.strategy);
  }
  return labels;
}

std::optional<DecidingPart> farthest_part(const Comparison& comparison) {
  const std::vector<DecidingPart> parts = part_differences(comparison);
  const auto farthest = std::ranges::max_element(parts, {}, [](const auto& part) { return std::abs(part.of_step); });
  return farthest == parts.end() ? std::nullopt : std::optional(*farthest);
}

StrategySummary summary_of(const std::vector<Comparison>& comparisons) {
  StrategySummary summary;
  Errors enough, is_short, parts, speed_ups;
  const std::vector<std::string> labels = strategy_labels(comparisons);
  const auto alone = std::find_if(comparisons.begin(), comparisons.end(), [](const Comparison& one) {
    return one.measured.devices == 1 && !one.is_disturbed();
  });
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& one = comparisons[i];
    const std::optional<double>& error = one.figure("step_time").error;
    if (!error) continue;
    (one.measured.cores && one.measured.cores->are_short() ? is_short : enough).add(*error);
    if (const auto part = farthest_part(one)) parts.add(part->of_step);
    if (alone != comparisons.end() && one.measured.devices > 1) {
      speed_ups.add((1 + *alone->figure("step_time").error) / (1 + *error) - 1);
    }
    add_pairs(comparisons, labels, i, summary);
  }
  summary.enough_cores = enough.summary();
  summary.short_of_cores = is_short.summary();
  summary.parts = parts.summary();
  summary.speed_ups = speed_ups.summary();
  return summary;
}

nlohmann::ordered_json strategy_comparison_to_json(const StrategyComparison& strategies) {
  nlohmann::ordered_json document = document_of("strategy_comparison");
  nlohmann::ordered_json compared = comparisons_to_json(strategies.comparisons);
  document["comparisons"] = std::move(compared["comparisons"]);
  document["not_compared"] = strategies.left_out;
  return document;
}

StrategyComparison strategy_comparison_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  StrategyComparison strategies{.comparisons = comparisons_from_json(document, origin)};
  Reading reading(document, origin);
  for (const JsonField& item : reading.root().required("not_compared").items())
    strategies.left_out.push_back(item.text());
  reading.finish();
  return strategies;
}

std::vector<std::string> summary_sentences(const std::vector<Comparison>& comparisons) {
  const StrategySummary summary = summary_of(comparisons);
  std::vector<std::string> sentences;
  if (summary.enough_cores.count > 0) {
    sentences.push_back(fmt::format("error of the step: {} {} with a core for each device",
                                    errors_text(summary.enough_cores), runs_text(summary.enough_cores)));
  }
  if (summary.short_of_cores.count > 0) {
    sentences.push_back(fmt::format("error of the step: {} {} with more devices than cores",
                                    errors_text(summary.short_of_cores), runs_text(summary.short_of_cores)));
  }
  if (summary.parts.count > 0) {
    sentences.push_back("the part that is farthest off, of the step: " + errors_text(summary.parts));
  }
  if (summary.speed_ups.count > 0) {
    sentences.push_back("error of the speed-up over one device: " + errors_text(summary.speed_ups));
  }
  if (summary.pairs > 0) {
    std::string order = fmt::format(
        "{} of {} pairs of strategies that differ by more than the noise are simulated in "
        "the measured order",
        summary.pairs - static_cast<int>(summary.reversed.size()), summary.pairs);
    for (const std::string& pair : summary.reversed) order += (&pair == &summary.reversed[0] ? "; not: " : ", ") + pair;
    sentences.push_back(std::move(order));
  }
  return sentences;
}

std::string strategy_comparison_text(const StrategyComparison& strategies) {
  const Report& first = strategies.comparisons.front().measured;
  const Report& predicted = strategies.comparisons.front().predicted;
  TextTable table;
  table.add({"strategy", "devices", "measured", predicted.deterministic ? "simulated" : "predicted", "error", "noise",
             "farthest part, of the step"});
  table.add_rule();
  int disturbed = 0;
  const std::vector<std::string> labels = strategy_labels(strategies.comparisons);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Comparison& one = strategies.comparisons[i];
    const ComparedFigure& step = one.figure("step_time");
    const std::optional<DecidingPart> part = farthest_part(one);
    table.add({labels[i], std::to_string(one.measured.devices), time_text(step.measured), time_text(step.predicted),
               step.error ? error_text(*step.error) : "disturbed",
               one.measured.deterministic ? "-" : percent_text(one.noise),
               part ? part->name + " " + error_text(part->of_step) : "-"});
    disturbed += one.is_disturbed() ? 1 : 0;
  }
  std::string text =
      fmt::format("{}: time of a step with every strategy, measured ({}) and {} ({})", shown(first.scenario),
                  first.engine, predicted.deterministic ? "simulated" : "predicted", predicted.engine);
  text = wrapped_list("", words_of(text), "") + "\n" + table.text() + "\n";
  for (const std::string& sentence : summary_sentences(strategies.comparisons)) {
    text += wrapped_list("", words_of(sentence), "");
  }
  if (disturbed > 0) {
    text += fmt::format("DISTURBED: {} of {} runs, which show no error\n", disturbed, strategies.comparisons.size());
  }
  std::vector<std::string> machine;
  if (!first.machine.empty()) machine.push_back(first.machine);
  if (!predicted.topology.empty()) {
    machine.push_back(fmt::format("{}: topology {} (figures: {})", predicted.engine, shown(predicted.topology),
                                  shown(predicted.topology_provenance)));
  }
  text += "\n" + wrapped_list("machine     ", machine, ";");
  for (const std::string& refusal : strategies.left_out) text += wrapped_list("left out    ", words_of(refusal), "");
  return text;
}

}  // namespace tandem
