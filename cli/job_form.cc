#include "cli/job_form.h"

#include <iostream>
#include <vector>

#include "cli/base/output.h"
#include "topologies/base/shown.h"

namespace tandem {

namespace {

ExportedJob exported(const Scenario& scenario, const std::vector<Origin>& origins, JobForm form) {
  try {
    return export_job(scenario, form);
  } catch (const InputError& error) {
    throw at_origins(error, scenario.file, origins);
  }
}

}  // namespace

CLI::Option* add_format_option(CLI::App& command, std::string& format, const std::string& help) {
  std::vector<std::string> words{"scenario"};
  for (const auto& [word, form] : job_forms()) words.push_back(word);
  return command.add_option("--format", format, help)->check(CLI::IsMember(words));
}

std::optional<JobForm> job_form(const std::string& format) {
  for (const auto& [word, form] : job_forms()) {
    if (word == format) return form;
  }
  return std::nullopt;
}

void write_job(const Scenario& scenario, const std::vector<Origin>& origins, JobForm form, const std::string& file,
               const CommonOptions& common) {
  const ExportedJob job = exported(scenario, origins, form);
  if (file.empty() || file == "-") {
    std::cout << job.text;
  } else {
    write_file(file, job.text);
  }
  if (common.quiet) return;
  for (const std::string& one : job.not_said) std::cerr << "tandem: not said: " << shown(one) << '\n';
}

}  // namespace tandem
