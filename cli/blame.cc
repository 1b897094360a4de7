#include "reports/blame/blame.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "reports/blame/blame_text.h"
#include "scenarios/import/traces/recorded_jobs.h"

namespace tandem {
namespace {

struct BlameFlags {
  CommonOptions common;
  std::vector<std::string> files;
  bool all = false;
};

int show_blame(const BlameFlags& flags) {
  const Output output(flags.common);
  const Blame result = blame(read_recorded_job({flags.files.begin(), flags.files.end()}));
  if (output.wants_page() || output.json()) {
    const nlohmann::ordered_json document = blame_to_json(result);
    output.write_page(document);
    if (output.json()) output.write_json(document);
  }
  if (!output.json()) output.write_text(blame_text(result, flags.all));
  return kOk;
}

}  // namespace

void add_blame(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("blame", "Show who slowed down a job, from its recorded timelines");
  auto flags = std::make_shared<BlameFlags>();
  command
      ->add_option("files", flags->files,
                   "A table of recorded ops (CSV), with the file of the job's sizes (.yaml) if there is one; or traces "
                   "of PyTorch's profiler, one of each rank")
      ->required();
  command->add_flag("--all", flags->all, "Show all rows of long tables");
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return show_blame(*flags); }; });
}

}  // namespace tandem
