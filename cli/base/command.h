// The subcommands. Each is a file with one function that adds it to the command line; when it is chosen, that function
// stores what is to be done in an Action.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/common_options.h"
#include "topologies/readers/import.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace tandem {

// Adds -o, -q, --no-color and --errors, and --json where the subcommand has a document to print.
void add_common_options(CLI::App& command, CommonOptions& options, bool with_json = true);

// Adds --html.
void add_page_option(CLI::App& command, CommonOptions& options);

// Adds --complete-with, the machine that has what a partial topology file lacks, and --gpu, the product of its GPUs.
// `topology`: the option for that file, without which neither may be given; null: another argument names it.
void add_import_options(CLI::App& command, ImportOptions& options, CLI::Option* topology = nullptr);

// Accepts the words of --device-type, for the type that each means.
CLI::Validator device_types();

// Accepts these words.
CLI::Validator one_of(const std::vector<std::string>& words);

// Accepts numbers from `least` to `most`, which NaN is not.
CLI::Validator number_within(double least, double most);

// Accepts the names of cross-device operations, and those of `besides`.
CLI::Validator known_cross_device_ops(const std::vector<std::string>& besides = {});

// Adds --nccl NAME=VALUE, which may be repeated; engines say which names and values there are.
void add_nccl_option(CLI::App& command, std::map<std::string, std::string>& variables);

// Reads "5%" or "0.05", but not "5", which could mean either 5 % or 500 %.
std::optional<double> parse_share(std::string_view text);

// Adds --set KEY=VALUE, which may be repeated.
void add_set_option(CLI::App& command, std::vector<std::string>& settings);

// Adds --margin: a percentage above 0 and below 100.
void add_margin_option(CLI::App& command, double& margin);

void add_blame(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_collectives(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_history(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);  // `completion` and `man`
void add_plan(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_topology(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);

// Prints the versions of Tandem and of what it was built with.
int print_version(bool json);

}  // namespace tandem
