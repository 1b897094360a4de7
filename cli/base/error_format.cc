#include "cli/base/error_format.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tandem {
namespace {

constexpr std::string_view kOption = "--errors";
bool is_json = false;

// Returns what is between a beginning and the first of some ends, or "".
std::string between(std::string_view text, std::string_view begin, std::initializer_list<std::string_view> ends) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + begin.size());
  std::size_t end = text.size();
  for (const std::string_view one : ends) end = std::min(end, text.find(one));
  return std::string(text.substr(0, end));
}

// Returns what the message says would be right, in its own words.
std::string expected_in(const std::string& message) {
  for (const std::string_view begin : {"expected ", "must be ", "(one of ", "(known: ", "(built: "}) {
    const bool is_list = begin.starts_with('(');
    const auto found = is_list ? between(message, begin, {")"}) : between(message, begin, {", found", "; ", ": "});
    if (!found.empty()) return is_list ? "one of " + found : found;
  }
  return "";
}

}  // namespace

void choose_error_format(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return;
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (word == kOption) is_json = next == "json";
    if (word.starts_with("--errors=")) is_json = word == "--errors=json";
  }
}

void add_errors_option(CLI::App& command) {
  command
      .add_option_function<std::string>(
          std::string(kOption), [](const std::string& word) { is_json = word == "json"; },
          "How errors appear on stderr: text, or json, an object a line")
      ->check(CLI::IsMember({"text", "json"}));
}

bool errors_are_json() {
  return is_json;
}

std::string error_line(const Diagnostic& error, int exit_code) {
  if (!is_json) return error.file.empty() ? "tandem: " + error.message : error.text();
  nlohmann::ordered_json document = {{"kind", "error"}};
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  const auto number = [](std::int64_t value, bool is_known) {
    return is_known ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  document["file"] = text(error.file);
  document["line"] = number(error.line, error.line > 0);
  document["column"] = number(error.column, error.line > 0 && error.column > 0);
  document["byte"] = number(error.byte, error.line <= 0 && error.byte >= 0);
  document["path"] = text(error.path);
  document["message"] = error.message;
  document["expected"] = text(expected_in(error.message));
  document["suggestion"] = text(between(error.message, "did you mean '", {"'"}));
  document["exit_code"] = exit_code;
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string in_chosen_form(const std::string& message, int exit_code) {
  constexpr std::string_view kOurs = "tandem: ";
  if (!is_json || message.starts_with('{')) return message;
  const bool is_ours = message.starts_with(kOurs);
  return error_line({.file = "", .path = "", .message = is_ours ? message.substr(kOurs.size()) : message}, exit_code);
}

}  // namespace tandem
