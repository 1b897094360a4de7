// The checks of one or many scenarios as one result, for people, for CI systems, and for trackers of benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/checks/check.h"

namespace tandem {

// failed: there is no verdict, because a file is wrong or the run broke. skipped: the scenario was not to be checked.
enum class CheckState : std::uint8_t { judged, skipped, failed };

struct CheckedScenario {
  std::string file{};
  int line = 1;        // to which annotations point
  std::string name{};  // the scenario's, or its file where that cannot be read
  std::string mode{};  // "exact", "stored", "paired", "history"
  CheckState state = CheckState::failed;
  Verdict verdict = Verdict::inconclusive;
  int exit_code = 0;
  bool cannot_be_judged = false;                        // the baseline is of another job
  bool misses_expectation = false;                      // of the scenario
  std::string reason{};                                 // a sentence
  std::string accept{};                                 // the command that accepts the change; empty: none does
  Nanoseconds step_time = 0;                            // 0: unknown
  Nanoseconds reference = 0;                            // with which it is compared; 0: unknown
  double change = 0;                                    // new / old - 1
  std::optional<std::pair<double, double>> interval{};  // of the change
  int samples = 0;                                      // steps
  std::string text{};                                   // for people, about this scenario alone
  std::shared_ptr<const nlohmann::ordered_json> document{};
  std::shared_ptr<const Report> report{};  // where this program ran the scenario itself

  // Returns the verdict's name, "expectation not met" where nothing else is wrong, "skipped" or "failed".
  std::string_view outcome() const;
  // Returns the reason and what to do next.
  std::string advice() const;
  // Returns whether there is a regression, a difference from a golden report, or an expectation that is not met.
  bool is_bad() const { return state == CheckState::judged && exit_code == 1; }
};

using CheckedSuite = std::vector<CheckedScenario>;

// Returns "3 ok, 1 regressed".
std::string summary_of(const CheckedSuite& suite);

// Returns a table with the summary, and the reasons for verdicts that are not ok.
std::string suite_text(const CheckedSuite& suite);
nlohmann::ordered_json suite_to_json(const CheckedSuite& suite);
// Returns what the text shows of a document. Throws InputError with everything that is missing or wrong.
CheckedSuite suite_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

// For CI systems: JUnit's XML (inconclusive and skipped ones are skipped tests, failed ones errors), Markdown, and
// lines of GitHub's workflow commands. Paths of annotations are relative to `workspace` if they lie in it.
std::string suite_junit(const CheckedSuite& suite);
std::string suite_markdown(const CheckedSuite& suite);
std::string suite_annotations(const CheckedSuite& suite, const std::string& workspace);

// For trackers of benchmarks: Google Benchmark's JSON, and CSV, of the scenarios that have a step time.
nlohmann::ordered_json suite_google_benchmark(const CheckedSuite& suite, const std::string& date);
std::string suite_csv(const CheckedSuite& suite);

}  // namespace tandem
