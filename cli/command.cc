#include "cli/command.h"

namespace tandem {

void add_common_options(CLI::App& command, CommonOptions& options, bool with_json) {
  command.add_option("-o,--output", options.output, "Write the result to this file instead of stdout");
  command.add_flag("-q,--quiet", options.quiet, "No progress on stderr, only errors");
  command.add_flag("--no-color", options.no_color, "No colors (also: NO_COLOR in the environment)");
  if (with_json) command.add_flag("--json", options.json, "Print one JSON document");
}

}  // namespace tandem
