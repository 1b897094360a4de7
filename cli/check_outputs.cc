#include "cli/check_outputs.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/check_history.h"
#include "cli/output.h"
#include "reports/report_json.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Steps of one job share the summary.
void append_to(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  if (!(out << text) || !out.flush()) {
    throw Error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
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
  const auto write = [](const std::string& file, const std::string& text) {
    if (!file.empty()) write_file(file, text);
  };
  write(flags.outputs.junit, suite_junit(suite));
  write(flags.outputs.markdown, suite_markdown(suite));
  write(flags.outputs.google_benchmark, json_text(suite_google_benchmark(suite, utc_date())));
  write(flags.outputs.csv, suite_csv(suite));
  if (const std::string file = environment("GITHUB_STEP_SUMMARY"); !file.empty()) {
    append_to(file, suite_markdown(suite));
  }
}

}  // namespace tandem
