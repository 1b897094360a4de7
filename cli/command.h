// What the subcommands share. Each subcommand is a file with one function that adds it to the command line and
// stores, when it was chosen, what is to be done in an Action.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace tandem {

// Runs after parsing. Returns the exit code; throws what docs/exit-codes.md lists.
using Action = std::function<int()>;

// Options every subcommand has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  bool no_color = false;
  std::string output;  // a file; empty or "-": stdout
};

// Adds -o, -q and --no-color, and --json where the subcommand has a document to print.
void add_common_options(CLI::App& command, CommonOptions& options, bool with_json = true);

// The words of --device-type.
CLI::Validator device_types();

// Accepts the cross-device operations there are.
CLI::Validator known_cross_device_ops(std::vector<std::string> besides = {});

void add_run(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);

// Prints the versions of Tandem and of what it was built with.
int print_version(bool json);

}  // namespace tandem
