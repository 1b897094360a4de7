#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/phase.h"
#include "engine/launched_job.h"
#include "reports/pages/page.h"
#include "reports/report_json.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

[[noreturn]] void cannot_write(const std::string& file) {
  throw Error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

bool is_stdout(const std::string& file) {
  return file.empty() || file == "-" || file == "/dev/stdout" || file == "/dev/fd/1" || file == "/proc/self/fd/1";
}

using Write = std::function<void(std::ostream&)>;

// The stream's own failure tells more than what a writer throws for it.
void write_to(std::ostream& stream, const std::string& name, const Write& write) {
  try {
    if (stream) write(stream);
  } catch (const Error&) {
    if (stream) throw;
  }
  if (!stream.flush()) cannot_write(name);
}

// Returns whether the path refers to an open file of a process, such as /dev/fd/3.
bool is_open_file(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::string path = std::filesystem::absolute(file, ignored).lexically_normal().string();
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

// Follows links to the file that is written, which need not exist yet.
std::filesystem::path followed(std::filesystem::path file) {
  constexpr int kMostLinks = 40;
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(file, ignored); ++links) {
    if (is_open_file(file)) break;
    file = file.parent_path() / std::filesystem::read_symlink(file, ignored);
  }
  return file;
}

// Returns whether the target is written to directly and never replaced: not a regular file, or one that a process has
// open.
bool is_stream(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  return is_open_file(file) || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status));
}

void write_through(const std::string& file, const Write& write) {
  std::ofstream out(file, std::ios::binary);
  write_to(out, file, write);
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
  if (is_stdout(file)) return;
  const std::filesystem::path target = followed(file);
  const bool existed = std::filesystem::exists(target);
  if (!std::ofstream(target, std::ios::app)) cannot_write(file);
  std::error_code ignored;
  if (!existed) std::filesystem::remove(target, ignored);
}

void write_file(const std::string& file, std::string_view text) {
  write_file(file, [text](std::ostream& stream) { stream << text; });
}

void write_file(const std::string& file, const Write& write) {
  namespace fs = std::filesystem;
  if (is_stdout(file)) return write_to(std::cout, "the standard output", write);
  const Phase phase("write " + file);
  std::error_code error;
  const fs::path target = followed(file);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (is_stream(target) || access(folder.c_str(), W_OK) != 0) return write_through(file, write);
  // Writes beside the file, so that it is replaced in one step, and readers see either the whole old or the whole new
  // text.
  const fs::path beside = target.string() + fmt::format(".{}.tmp", getpid());
  try {
    write_through(beside.string(), write);
  } catch (const Error&) {
    const int reason = errno;
    fs::remove(beside, error);
    errno = reason;
    cannot_write(file);
  }
  const fs::perms permissions = fs::status(target, error).permissions();
  if (permissions != fs::perms::unknown) fs::permissions(beside, permissions, error);
  fs::rename(beside, target, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(beside, ignored);
  throw Error(fmt::format("cannot write {}: {}", file, error.message()));
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

void Output::write_json(const nlohmann::ordered_json& document) const {
  write_document(json_text(document));
}

void Output::write_page(const nlohmann::ordered_json& document, const JsonOrigin& origin) const {
  if (wants_page() && reports_for_job()) write_file(options_.html, page_of(document, origin));
}

}  // namespace tandem
