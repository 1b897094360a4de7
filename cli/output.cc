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

#include "reports/pages/page.h"
#include "reports/report_json.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_stdout(const std::string& file) {
  return file.empty() || file == "-";
}

[[noreturn]] void cannot_write(const std::string& file) {
  throw Error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

void write_through(const std::string& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary);
  if (!(out << text) || !out.flush()) cannot_write(file);
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
  const bool existed = std::filesystem::exists(file);
  if (!std::ofstream(file, std::ios::app)) cannot_write(file);
  std::error_code ignored;
  if (!existed) std::filesystem::remove(file, ignored);
}

void write_file(const std::string& file, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = fs::is_symlink(file, error) ? fs::weakly_canonical(file, error) : fs::path(file);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const bool is_device = fs::exists(target, error) && !fs::is_regular_file(target, error);
  if (is_device || access(folder.c_str(), W_OK) != 0) return write_through(file, text);
  // Beside the file, so that it is replaced in one step: whoever reads it meets the old or the new text, whole.
  const fs::path beside = target.string() + fmt::format(".{}.tmp", getpid());
  try {
    write_through(beside.string(), text);
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

Output::Output(const CommonOptions& options) : options_(options) {
  check_writable(options_.output);
  check_writable(options_.html);
}

void Output::write_text(std::string_view text) const {
  if (!is_stdout(options_.output)) return write_file(options_.output, text);
  if (!(std::cout << text << std::flush)) cannot_write("the standard output");
}

void Output::write_json(const nlohmann::ordered_json& document) const {
  write_text(json_text(document));
}

void Output::write_page(const nlohmann::ordered_json& document, const std::string& name) const {
  if (wants_page()) write_file(options_.html, page_of(document, name));
}

}  // namespace tandem
