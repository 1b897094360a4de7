#include <CLI/CLI.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "scenarios/reading/scenario_schema.h"

namespace tandem {

void add_schema(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of scenario files, for editors");
  auto options = std::make_shared<CommonOptions>();
  add_common_options(*command, *options);  // it is JSON with --json and without
  command->callback([options, &action] {
    action = [options] {
      Output(*options).write_document(scenario_schema());
      return kOk;
    };
  });
}

}  // namespace tandem
