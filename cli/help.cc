#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::vector<const CLI::App*> all_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string unknown_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : all_commands(app)) names.push_back(command->get_name());
  const std::string near = nearest_name(name, names);
  return fmt::format("unknown command '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  CLI::App* help = app.add_subcommand("help", "Show what a command does and its options, as `tandem COMMAND --help`");
  auto common = std::make_shared<CommonOptions>();
  auto name = std::make_shared<std::string>();
  help->add_option("command", *name, "The command; none: all of them")
      ->check(CLI::Validator(
          [&app](const std::string& word) {
            for (const CLI::App* command : all_commands(app)) {
              if (command->get_name() == word) return std::string();
            }
            return unknown_command(app, word);
          },
          ""));
  add_common_options(*help, *common, false);
  help->callback([common, name, &app, &action] {
    action = [common, name, &app] {
      const CLI::App* const command = name->empty() ? &app : app.get_subcommand(*name);
      // That of the whole program: CLI11 shows the help of the chosen subcommand otherwise.
      Output(*common).write_document(
          command == &app ? app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal)
                          : command->help(app.get_name()));
      return kOk;
    };
  });
}

}  // namespace tandem
