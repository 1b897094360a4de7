#include "cli/base/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/base/phase.h"
#include "engine/launched_job.h"
#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_stdout(const std::string& file) {
  return file.empty() || file == "-" || file == "/dev/stdout" || file == "/dev/fd/1" || file == "/proc/self/fd/1";
}

std::string stdout_error;  // why it could not be written; empty: it could

void write_stdout(const std::function<void(std::ostream&)>& write) {
  try {
    write_to(std::cout, "the standard output", write);
  } catch (const Error& error) {
    if (std::cout) throw;
    if (stdout_error.empty()) stdout_error = error.what();
  }
}

std::string_view code_of(Color color) {
  switch (color) {
    case Color::red:
      return "\033[31m";
    case Color::green:
      return "\033[32m";
    case Color::yellow:
      return "\033[33m";
  }
  TANDEM_UNREACHABLE("a color without a code");
}

}  // namespace

bool wants_color(const std::ostream& stream, bool no_color) {
  if (no_color) return false;
  if (is_set("FORCE_COLOR")) return true;
  const char* terminal = std::getenv("TERM");
  if (is_set("NO_COLOR") || (terminal != nullptr && std::string_view(terminal) == "dumb")) return false;
  return isatty(&stream == &std::cout ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

std::string colored(std::string_view text, Color color, const std::ostream& stream, bool no_color) {
  if (!wants_color(stream, no_color)) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(color), text);
}

void check_writable(const std::string& file) {
  if (!is_stdout(file)) check_replaceable(file);
}

void write_file(const std::string& file, std::string_view text) {
  write_file(file, [text](std::ostream& stream) { stream << text; });
}

void write_file(const std::string& file, const std::function<void(std::ostream&)>& write) {
  if (is_stdout(file)) return write_stdout(write);
  const Phase phase("write " + file);
  replace_file(file, write);
}

std::string stdout_problem() {
  write_stdout([](std::ostream&) {});  // flushes it
  return stdout_error;
}

bool is_page_alone(const CommonOptions& options) {
  return !options.html.empty() && is_stdout(options.html) && is_stdout(options.output);
}

Output::Output(const CommonOptions& options) : options_(options) {
  if (!reports_for_job()) return;
  check_writable(options_.output);
  check_writable(options_.html);
}

void Output::write_text(std::string_view text) const {
  write_document(shown_output(text));
}

void Output::write_document(std::string_view text) const {
  if (!reports_for_job() || is_page_alone(options_)) return;
  write_file(options_.output, text);
}

void Output::write_document(const std::function<void(std::ostream&)>& write) const {
  if (!reports_for_job() || is_page_alone(options_)) return;
  write_file(options_.output, write);
}

void Output::write_json(const nlohmann::ordered_json& document) const {
  write_document(json_text(document));
}

void Output::write_page(const nlohmann::ordered_json& document, const JsonOrigin& origin) const {
  if (wants_page() && reports_for_job()) write_file(options_.html, page_of(document, origin));
}

}  // namespace tandem
