// Writes a suite's result in formats that other programs read.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/base/text_table.h"
#include "reports/checks/suite.h"
#include "reports/run/report.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

struct Replacement {
  char character;
  std::string_view text;
};

template <std::size_t count>
std::string replaced(std::string_view text, const Replacement (&replacements)[count]) {
  std::string result;
  for (const char c : text) {
    const auto* const found = std::find_if(std::begin(replacements), std::end(replacements),
                                           [c](const Replacement& one) { return one.character == c; });
    result += found == std::end(replacements) ? std::string_view(&c, 1) : found->text;
  }
  return result;
}

std::string xml_attribute(std::string_view text) {
  return replaced(xml_text(text), {{'\n', "&#10;"}, {'\t', "&#9;"}});
}

// Escapes values like actions/toolkit (packages/core/src/command.ts).
std::string command_message(std::string_view text) {
  return replaced(shown_text(text), {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}});
}
std::string command_property(std::string_view text) {
  return replaced(shown_text(text), {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}});
}

std::string markdown_cell(std::string_view text) {
  return replaced(shown_text(text), {{'\\', "\\\\"},
                                     {'|', "\\|"},
                                     {'\n', " "},
                                     {'&', "&amp;"},
                                     {'<', "&lt;"},
                                     {'`', "\\`"},
                                     {'*', "\\*"},
                                     {'_', "\\_"},
                                     {'[', "\\["}});
}

bool is_inconclusive(const CheckedScenario& checked) {
  return checked.state == CheckState::judged && checked.verdict == Verdict::inconclusive && !checked.is_bad();
}

std::string junit_result(const CheckedScenario& checked) {
  const std::string reason = xml_attribute(checked.advice());
  if (checked.state == CheckState::failed) {
    return fmt::format("      <error type=\"exit code {}\" message=\"{}\"/>\n", checked.exit_code, reason);
  }
  if (checked.is_bad()) {
    return fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n", checked.outcome(), reason,
                       xml_attribute(checked.text));
  }
  if (checked.state == CheckState::skipped || is_inconclusive(checked)) {
    return fmt::format("      <skipped message=\"{}: {}\"/>\n", checked.outcome(), reason);
  }
  return "";
}

// Returns the path of a file from the root of the repository, as GitHub expects it.
std::string path_in(const std::string& file, const std::string& workspace) {
  if (workspace.empty()) return file;
  std::error_code error;
  const std::filesystem::path relative = std::filesystem::relative(file, workspace, error);
  return error || relative.empty() || *relative.begin() == ".." ? file : relative.string();
}

std::string_view annotation_of(const CheckedScenario& checked) {
  if (checked.is_bad() || checked.state == CheckState::failed) return "error";
  if (is_inconclusive(checked)) return "warning";
  return checked.state == CheckState::judged && checked.verdict == Verdict::improved ? "notice" : "";
}

std::string interval_cell(const CheckedScenario& checked) {
  return checked.interval ? interval_text(checked.interval->first, checked.interval->second) : "";
}

}  // namespace

std::string suite_junit(const CheckedSuite& suite) {
  std::size_t failures = 0, errors = 0, skipped = 0;
  std::string cases;
  for (const CheckedScenario& checked : suite) {
    const std::string result = junit_result(checked);
    failures += result.find("<failure ") != std::string::npos ? 1 : 0;
    errors += result.find("<error ") != std::string::npos ? 1 : 0;
    skipped += result.find("<skipped ") != std::string::npos ? 1 : 0;
    cases += fmt::format("    <testcase classname=\"tandem.{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.9f}\"{}",
                         checked.mode.empty() ? "check" : xml_attribute(checked.mode), xml_attribute(checked.name),
                         xml_attribute(checked.file), checked.line, static_cast<double>(checked.step_time) * 1e-9,
                         result.empty() ? "/>\n" : ">\n");
    if (!result.empty()) cases += result + "    </testcase>\n";
  }
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", suite.size(), failures, errors, skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite name=\"tandem check\" {0}>\n{1}"
      "  </testsuite>\n</testsuites>\n",
      counts, cases);
}

std::string suite_markdown(const CheckedSuite& suite) {
  std::string text = fmt::format("### tandem check: {}\n\n", summary_of(suite));
  text += "| scenario | verdict | step time | reference | change | interval | why |\n";
  text += "|---|---|---:|---:|---:|---:|---|\n";
  for (const CheckedScenario& checked : suite) {
    const std::string verdict(checked.outcome());
    const bool is_bad = checked.is_bad() || checked.state == CheckState::failed;
    const auto [step, reference] = time_texts(checked.step_time, checked.reference);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", markdown_cell(checked.name),
                        is_bad ? "**" + verdict + "**" : verdict, checked.step_time > 0 ? step : "",
                        checked.reference > 0 ? reference : "", checked.reference > 0 ? error_text(checked.change) : "",
                        interval_cell(checked), markdown_cell(checked.advice()));
  }
  return text + "\n";
}

std::string suite_annotations(const CheckedSuite& suite, const std::string& workspace) {
  std::string text;
  for (const CheckedScenario& checked : suite) {
    const std::string_view kind = annotation_of(checked);
    if (kind.empty()) continue;
    text += fmt::format("::{} file={},line={},title={}::{}\n", kind, command_property(path_in(checked.file, workspace)),
                        checked.line, command_property(fmt::format("{}: {}", checked.name, checked.outcome())),
                        command_message(checked.advice()));
  }
  return text;
}

nlohmann::ordered_json suite_google_benchmark(const CheckedSuite& suite, const std::string& date) {
  using Object = nlohmann::ordered_json;
  Object json;
  json["context"] = {{"date", date}, {"executable", "tandem"}, {"tandem_version", version()}};
  json["benchmarks"] = Object::array();
  for (const CheckedScenario& checked : suite) {
    if (checked.step_time <= 0) continue;
    json["benchmarks"].push_back({{"name", checked.name},
                                  {"run_name", checked.name},
                                  {"run_type", "iteration"},
                                  {"repetitions", 1},
                                  {"repetition_index", 0},
                                  {"threads", 1},
                                  {"iterations", std::max(1, checked.samples)},
                                  {"real_time", checked.step_time},
                                  {"cpu_time", checked.step_time},
                                  {"time_unit", "ns"}});
  }
  return json;
}

std::string suite_csv(const CheckedSuite& suite) {
  std::string text = "scenario,file,mode,verdict,step_time_ns,reference_ns,change,lower,upper\n";
  for (const CheckedScenario& checked : suite) {
    if (checked.step_time <= 0) continue;
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(checked.name), csv_cell(checked.file),
                        csv_cell(checked.mode), checked.outcome(), checked.step_time,
                        checked.reference > 0 ? std::to_string(checked.reference) : "",
                        checked.reference > 0 ? fmt::format("{:.6g}", checked.change) : "",
                        checked.interval ? fmt::format("{:.6g}", checked.interval->first) : "",
                        checked.interval ? fmt::format("{:.6g}", checked.interval->second) : "");
  }
  return text;
}

}  // namespace tandem
