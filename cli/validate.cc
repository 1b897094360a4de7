#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "scenarios/validation/validate.h"

namespace tandem {
namespace {

struct ValidateFlags {
  CommonOptions common;
  std::string folder;
  validation::Protocol protocol = validation::Protocol::links;
  bool by_family = true;
  double beyond_percent = 0;  // 0: show the errors of all points
};

std::string text_of(const ValidateFlags& flags, const Validation& validation) {
  return flags.beyond_percent > 0 ? validation_tail_text(validation, flags.beyond_percent / 100)
                                  : validation_text(validation, flags.by_family);
}

int validate(const ValidateFlags& flags) {
  const Output output(flags.common);
  ProgressLine progress(flags.common);
  const Validation validation = validate_folder(flags.folder, flags.protocol, progress.of_steps("validating"));
  progress.finish();
  if (output.json()) {
    output.write_json(validation_json(validation));
  } else {
    output.write_text(text_of(flags, validation));
  }
  return validation.contradictions.empty() ? kOk : kNotMet;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("validate", "Replay a folder of measurements, and show how far predictions are apart");
  auto flags = std::make_shared<ValidateFlags>();
  command->add_option("folder", flags->folder, "The folder; docs/validation.md has the form of its files")->required();
  std::map<std::string, validation::Protocol> words;
  for (const auto& [word, protocol] : validation::protocol_words()) words[word] = protocol;
  command
      ->add_option(
          "--protocol", flags->protocol,
          "What is fitted: nothing (links, the default), every other size (sizes), fewer devices (ranks), one node "
          "(nodes), the one-device row of training tables (first-row)")
      ->transform(CLI::CheckedTransformer(words).description("{sizes,ranks,nodes,links,first-row}"));
  CLI::Option* summary = command->add_flag("!--summary", flags->by_family, "No table of the single machines");
  command
      ->add_option("--beyond", flags->beyond_percent,
                   "Instead of the errors: the files whose points are off by more than so many percent")
      ->check(number_within(1e-3, 1e9))
      ->excludes(summary);
  add_common_options(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return validate(*flags); }; });
}

}  // namespace tandem
