// Messages for a command line that is wrong.
#pragma once

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem {

// Prints help to stdout (exit code 0), or one message and where to find help to stderr (exit code 2).
int report_parse_error(const CLI::App& app, const CLI::ParseError& error);
// Prints help to stderr for a command line without a subcommand or --version (exit code 2).
int report_missing_command(const CLI::App& app);

}  // namespace tandem
