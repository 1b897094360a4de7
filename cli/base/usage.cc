#include "cli/base/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/base/error_format.h"
#include "cli/base/exit_codes.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

// Returns the subcommand that the words were meant for, or the whole program.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

std::string full_name(const CLI::App& app, const CLI::App& command) {
  return &command == &app ? app.get_name() : app.get_name() + " " + command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string with_suggestion(const std::string& message, const std::string& word,
                            const std::vector<std::string>& known) {
  const std::string near = nearest_name(word, known);
  return near.empty() ? message : message + fmt::format("; did you mean '{}'?", near);
}

// Reports an unknown word rather than a missing one, because "--replica 2" also leaves the 2 over.
std::string message_for(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining(true);
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word == "-" || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    return with_suggestion(fmt::format("unknown option '{}'", name), name, option_names(command));
  }
  if (!words.empty() && &command == &app) {
    return with_suggestion(fmt::format("unknown command '{}'", words.front()), words.front(), command_names(app));
  }
  if (!words.empty()) return fmt::format("unexpected argument '{}'", words.front());
  return error.what();
}

}  // namespace

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  const CLI::App& command = chosen_command(app);
  const std::string name = full_name(app, command);
  const std::string message = message_for(app, command, error);
  if (errors_are_json()) {
    std::cerr << error_line({.file = "", .path = "", .message = message}, kUsage) << std::endl;
  } else {
    std::cerr << shown_output(fmt::format("{}: {}\nSee '{} --help'.\n", name, message, name));
  }
  return kUsage;
}

int report_missing_command(const CLI::App& app) {
  if (errors_are_json()) {
    std::cerr << error_line({.file = "", .path = "", .message = "a command is required"}, kUsage) << std::endl;
    return kUsage;
  }
  std::cerr << app.help() << std::flush;
  return kUsage;
}

}  // namespace tandem
