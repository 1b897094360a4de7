// Two stored runs side by side: what takes how long in each, what each did, and in what their jobs differ. There is no
// verdict; check.h gives one.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/run/report.h"

namespace tandem {

struct RunComparison {
  std::string baseline_name, name;  // of their files
  Report baseline;                  // the first run
  Report now;                       // the second
  // In what the contents of the two scenarios differ, if they do; empty: only the hashes are known.
  std::vector<std::string> scenario_changes{};
};

nlohmann::ordered_json run_comparison_to_json(const RunComparison& runs);
// Throws InputError with everything that is missing or wrong.
RunComparison run_comparison_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

// Returns a row for each figure that both runs have: its name, both values, and the change ("-" where it has none).
std::vector<std::array<std::string, 4>> compared_rows(const RunComparison& runs);
// Says what changes the meaning of the rows, a sentence each: disturbances, noise, exact counts, and in what the jobs
// and the models differ.
std::vector<std::string> comparison_remarks(const RunComparison& runs);

std::string run_comparison_text(const RunComparison& runs);

}  // namespace tandem
