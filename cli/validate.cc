#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "reports/errors/known_errors.h"
#include "reports/run/report_json.h"
#include "reports/validation/group_bands.h"
#include "scenarios/validation/validate.h"
#include "topologies/base/strict_yaml.h"  // read_input_file

namespace tandem {
namespace {

struct ValidateFlags {
  CommonOptions common;
  std::string folder;
  bool is_of_mlperf = false;
  validation::Protocol protocol = validation::Protocol::links;
  bool by_family = true;
  double beyond_percent = 0;  // 0: show the errors of all points
  std::string bands;          // a file for the errors on which error bands rest; empty: none
};

std::string text_of(const ValidateFlags& flags, const Validation& validation) {
  return flags.beyond_percent > 0 ? validation_tail_text(validation, flags.beyond_percent / 100)
                                  : validation_text(validation, flags.by_family);
}

KnownErrors stored_bands(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  const JsonOrigin origin(file, read_input_file(file));
  return known_errors_from_json(origin.parse(), origin);
}

FigureBasis figures_of(validation::Protocol protocol) {
  using validation::Protocol;
  if (protocol == Protocol::links) return FigureBasis::stated;
  return protocol == Protocol::first_row ? FigureBasis::fitted : FigureBasis::calibrated;
}

// Puts the errors of published measurements in place of those that the file has of the same groups and protocol.
void write_bands(const ValidateFlags& flags, KnownErrors known, const Validation& validation) {
  const std::vector<GroupErrors> groups = group_errors(validation, figures_of(flags.protocol));
  if (groups.empty()) {
    throw InputError({{.file = flags.folder,
                       .path = "",
                       .message = "has no published measurement that counts, so that no error band follows from it"}});
  }
  const auto has_such = [&](bool is_collectives) {
    return std::ranges::any_of(
        groups, [&](const GroupErrors& one) { return is_of_collectives(one.of.group) == is_collectives; });
  };
  std::erase_if(known.published, [&](const GroupErrors& one) {
    return one.figures == figures_of(flags.protocol) && has_such(is_of_collectives(one.of.group));
  });
  known.published.insert(known.published.end(), groups.begin(), groups.end());
  std::ranges::stable_sort(known.published, {}, [](const GroupErrors& one) { return std::pair(one.figures, one.of); });
  write_file(flags.bands, json_text(known_errors_to_json(known)));
}

int validate(const ValidateFlags& flags) {
  const Output output(flags.common);
  KnownErrors known;
  if (!flags.bands.empty()) {
    known = stored_bands(flags.bands);
    check_writable(flags.bands);
  }
  ProgressLine progress(flags.common);
  const auto replay = flags.is_of_mlperf ? validate_mlperf : validate_folder;
  const Validation validation = replay(flags.folder, flags.protocol, progress.of_steps("validating"));
  progress.finish();
  if (output.json()) {
    output.write_json(validation_json(validation));
  } else {
    output.write_text(text_of(flags, validation));
  }
  if (!flags.bands.empty()) write_bands(flags, std::move(known), validation);
  return validation.contradictions.empty() ? kOk : kNotMet;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("validate", "Replay a folder of measurements, and show how far predictions are apart");
  auto flags = std::make_shared<ValidateFlags>();
  command->add_option("folder", flags->folder, "The folder; docs/validation.md has the form of its files")->required();
  command->add_flag("--mlperf", flags->is_of_mlperf,
                    "The folder holds results of MLPerf Training as they are published: logs, systems, configurations");
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
  command->add_option("--write-bands", flags->bands,
                      "Also write the errors on which error bands rest to this file, beside what it has of other "
                      "protocols (links, first-row, and sizes)");
  add_common_options(*command, flags->common);
  command->callback([flags, &action] {
    using validation::Protocol;
    if (!flags->bands.empty() && (flags->protocol == Protocol::ranks || flags->protocol == Protocol::nodes)) {
      throw CLI::ValidationError("--write-bands", "error bands rest on the protocols links, first-row and sizes only");
    }
    if (flags->is_of_mlperf && flags->protocol != Protocol::links && flags->protocol != Protocol::first_row) {
      throw CLI::ValidationError("--mlperf", "is for the protocols links and first-row");
    }
    action = [flags] { return validate(*flags); };
  });
}

}  // namespace tandem
