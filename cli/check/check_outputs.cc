#include "cli/check/check_outputs.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/base/output.h"
#include "cli/check/check_history.h"
#include "reports/run/report_json.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// The steps of one job share the summary. No option asked for it, so the verdict does not depend on it.
void append_summary(const std::string& file, const CheckedSuite& suite) {
  try {
    append_to_file(file, suite_markdown(suite));
  } catch (const Error& error) {
    std::cerr << fmt::format("tandem: no summary in {}: {}", shown(file), error.what()) << std::endl;
  }
}

}  // namespace

void check_outputs_writable(const CheckFlags& flags) {
  const CheckOutputs& outputs = flags.outputs;
  for (const std::string& file : {outputs.junit, outputs.markdown, outputs.google_benchmark, outputs.csv}) {
    check_writable(file);
  }
}

void write_outputs(const CheckFlags& flags, const CheckedSuite& suite) {
  if (environment("GITHUB_ACTIONS") == "true") {
    std::cerr << suite_annotations(suite, environment("GITHUB_WORKSPACE")) << std::flush;
  }
  // If a file cannot be written, the others still are.
  std::exception_ptr failure;
  const auto write = [&failure](const std::string& file, const std::string& text) {
    try {
      if (!file.empty()) write_file(file, text);
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
  };
  write(flags.outputs.junit, suite_junit(suite));
  write(flags.outputs.markdown, suite_markdown(suite));
  write(flags.outputs.google_benchmark, json_text(suite_google_benchmark(suite, utc_date())));
  write(flags.outputs.csv, suite_csv(suite));
  if (const std::string file = environment("GITHUB_STEP_SUMMARY"); !file.empty()) append_summary(file, suite);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tandem
