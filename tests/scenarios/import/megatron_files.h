#pragma once

#include "scenarios/import/megatron.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {

// Reads a script for Megatron-LM: as the job that it says, as the scenario that it becomes, or as the error message.
class MegatronFiles : public ImportFiles {
 protected:
  MegatronJob job(const std::string& text, const std::string& name = "job.sh") const {
    return read_megatron(read_flags(write(name, text)));
  }
  std::string problem(const std::string& text) const {
    const auto file = write("job.sh", text);
    return refusal([&] { import_file(file, {}, ""); });
  }
  Scenario scenario(const std::string& text, const ImportChoices& options = {},
                    const std::string& name = "job.sh") const {
    const auto file = write(name, text);
    return parse_scenario(import_file(file, options, "").scenario, file.string());
  }
};

}  // namespace tandem
