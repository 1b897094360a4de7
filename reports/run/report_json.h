// Writes reports as JSON and reads them (docs/reports.md lists every field).
//
// Equal reports give equal bytes. Times are integer nanoseconds, sizes bytes, bandwidths bytes/s. A number that is
// not finite, such as the loss of a diverged run, is written as null.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reports/base/json_document.h"
#include "reports/run/report.h"

namespace tandem {

class JsonField;

inline constexpr int kReportSchemaVersion = 1;

nlohmann::ordered_json report_to_json(const Report& report);

// Convert parts that all documents have in the same form.
nlohmann::ordered_json long_steps_to_json(const LongSteps& steps);
std::optional<LongSteps> long_steps_from_json(const JsonField& field);  // empty if the document lacks the field
nlohmann::ordered_json step_time_to_json(const StepTime& time);
StepTime step_time_from_json(const JsonField& field);
nlohmann::ordered_json per_step_to_json(const PerStep& per_step);
PerStep per_step_from_json(const JsonField& field);

// Begins a document of another kind, "check": its kind, and the versions of the schema and of Tandem.
nlohmann::ordered_json document_of(std::string_view kind);

// Returns the text of a document: indented, ending in a newline, always valid UTF-8.
std::string json_text(const nlohmann::ordered_json& document);

// Read a report. Throw InputError with everything that is missing or wrong and its place; `file` and `origin` are for
// messages. Ignore unknown fields, so that an older Tandem reads reports of a newer one. report_from_json() and
// load_report() refuse reports that a page carries without parts of them, which are only to be shown.
Report report_from_json(std::string_view text, const std::string& file);
Report report_from_document(const nlohmann::ordered_json& document, const JsonOrigin& origin);
// Reads the report in a field of a document of another kind. Adds what is missing or wrong to the field's problems.
Report report_from_field(const JsonField& field);
Report load_report(const std::filesystem::path& path);
// Throws InputError if a document is no report, or if the parts of its step do not add up to it, as in one that was
// edited.
void check_parts_add_up(const nlohmann::ordered_json& document, const JsonOrigin& origin);

}  // namespace tandem
