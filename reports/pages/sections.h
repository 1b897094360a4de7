// Makes the sections of a page, for each kind of document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/base/json_document.h"
#include "reports/run/report.h"
#include "reports/run/run_details.h"

namespace tandem {
class JsonField;
}

namespace tandem::pages {

// The part of a page above its sections.
struct Heading {
  std::string title;
  std::string origin;           // one line below the title
  std::string verdict{};        // in a frame; empty: none
  std::string verdict_class{};  // "good", "bad", "open"
};
using Json = nlohmann::ordered_json;
struct Content {
  Heading heading;
  std::vector<std::string> sections;  // each with its heading, or none
};

Content run_content(const Json& document, const JsonOrigin& origin);
Content comparison_content(const Json& document, const JsonOrigin& origin);
Content strategy_comparison_content(const Json& document, const JsonOrigin& origin);
Content run_comparison_content(const Json& document, const JsonOrigin& origin);
Content check_content(const Json& document, const JsonOrigin& origin);
Content paired_check_content(const Json& document, const JsonOrigin& origin);
Content suite_content(const Json& document, const JsonOrigin& origin);
Content history_check_content(const Json& document, const JsonOrigin& origin);
Content plan_content(const Json& document, const JsonOrigin& origin);
Content sweep_content(const Json& document, const JsonOrigin& origin);
Content blame_content(const Json& document, const JsonOrigin& origin);
Content history_content(const Json& document, const JsonOrigin& origin);

// Returns the details for pictures that the run left in its report, if any.
std::optional<RunDetails> details_of(const JsonField& report);

// Parts of these.
void set_verdict(Heading& heading, const std::string& verdict);  // the name of a Verdict
std::string headline_list(const Report& report);
// The parts of both steps, which add up to the change of the step; "" where a run does not know them.
std::string change_section(const Report& report, const Report& baseline);
std::string course_section(const Report& report);       // "" where it has none
std::string evaluations_section(const Report& report);  // likewise
std::string step_section(const Report& report);
std::string collectives_section(const Report& report, const std::vector<CollectiveBound>& bounds);
// The median steps of two runs of the same work, aligned.
std::string paired_steps_section(RunDetails measured, RunDetails simulated);
std::string gantt_section(const std::optional<RunDetails>& details, Nanoseconds exposed_communication);
std::string notes_section(const Report& report);

}  // namespace tandem::pages
