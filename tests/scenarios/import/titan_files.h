// Jobs of torchtitan for tests: as the job that one says, as the scenario that it becomes, or as the error message.
#pragma once

#include <string>
#include <variant>

#include "scenarios/import/titan/torchtitan.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {

class TitanFiles : public ImportFiles {
 protected:
  static std::string config(const std::string& training, const std::string& parallelism = "",
                            const std::string& others = "", const std::string& model = "flavor = \"8B\"") {
    return "[model]\nname = \"llama3\"\n" + model + "\n[training]\n" + training + "\n[parallelism]\n" + parallelism +
           "\n" + others;
  }
  TitanJob job(const std::string& text) const { return read_titan_job(InputFile(write("job.toml", text))); }
  Scenario scenario(const std::string& text, const ImportChoices& options = {}) const {
    const auto file = write("job.toml", text);
    const Imported imported = import_file(InputFile(file), options, "");
    EXPECT_EQ(imported.kind, ImportKind::torchtitan);
    return parse_scenario(imported.scenario, file.string());
  }
  std::string problem(const std::string& text, const ImportChoices& options = {}) const {
    const auto file = write("job.toml", text);
    return refusal([&] { import_file(InputFile(file), options, ""); });
  }
  static const LayersSettings& layers_of(const Scenario& scenario) {
    return std::get<LayersSettings>(scenario.workload.kind);
  }
};

}  // namespace tandem
