// How errors appear on stderr: as lines for people, or with `--errors json` as JSON objects, one a line.
#pragma once

#include <string>

#include "topologies/base/error.h"

namespace CLI {
class App;
}

namespace tandem {

// Finds --errors on the command line before it is parsed, so that the errors of parsing have that form, too.
void choose_error_format(int argc, char** argv);
void add_errors_option(CLI::App& command);

bool errors_are_json();

// Returns an error in the chosen form, without a line's end. As text, what has no file begins with "tandem: ". As JSON
// it has `file`, `line`, `column` and `byte` as far as they are known, the `path` of the key, `message`, what would be
// right as far as the message says (`expected`, `suggestion`), and `exit_code`.
std::string error_line(const Diagnostic& error, int exit_code);

// Returns lines of text in the chosen form; those that have it stay.
std::string in_chosen_form(const std::string& message, int exit_code);

}  // namespace tandem
