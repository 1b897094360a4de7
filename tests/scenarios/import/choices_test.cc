// Which options of an import are for which files: as docs/import.md says.
#include "scenarios/import/choices.h"

#include <map>

#include "tests/scenarios/import/import_files.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

// Every option that is not for all files, given.
const std::map<std::string, ImportChoices>& given_options() {
  static const std::map<std::string, ImportChoices> kGiven{{"--sequence-length", {.tokens = 1}},
                                                           {"--batch", {.batch = 1}},
                                                           {"--dtype", {.dtype = "f32"}},
                                                           {"--precision", {.precision = "fp8"}},
                                                           {"--optimizer", {.optimizer = "sgd"}},
                                                           {"--recompute", {.recompute = true}},
                                                           {"--strategy", {.strategy = "mesh"}},
                                                           {"--predictors", {.predictors = 1}},
                                                           {"--lora", {.lora = "adapter_config.json"}},
                                                           {"--config", {.config = "llama3_8b"}},
                                                           {"--dispatch", {.dispatch = "deepep"}},
                                                           {"--tensor", {.tensor = 1}},
                                                           {"--pipeline", {.pipeline = 1}},
                                                           {"--context", {.context = 1}},
                                                           {"--expert", {.expert = 1}},
                                                           {"--virtual-stages", {.virtual_stages = 1}},
                                                           {"--micro-batch", {.micro_batch = 1}}};
  return kGiven;
}

// The second column of the table of options, by option.
std::map<std::string, std::string> documented_files() {
  std::map<std::string, std::string> files;
  std::istringstream page(read_input_file(TANDEM_SOURCE_DIR "/docs/import.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `--")) continue;
    const std::size_t end = line.find(" | "), next = line.find(" | ", end + 3);
    const std::string options = line.substr(0, end);
    for (std::size_t at = options.find('`'); at != std::string::npos;) {
      const std::size_t close = options.find('`', at + 1);
      files.emplace(options.substr(at + 1, close - at - 1), line.substr(end + 3, next - end - 3));
      at = options.find('`', close + 1);
    }
  }
  return files;
}

bool says(const std::string& files, ImportKind kind) {
  const auto has = [&](const char* words) { return files.find(words) != std::string::npos; };
  if (kind == ImportKind::torchtitan) return has("torchtitan");
  if (kind == ImportKind::megatron) return has("models");
  return kind == ImportKind::hugging_face && (has("models") || has("Hugging Face"));
}

TEST(ImportChoices, AreForTheFilesThatTheirPageSays) {
  const std::map<std::string, std::string> documented = documented_files();
  for (const auto& [option, choices] : given_options()) {
    ASSERT_TRUE(documented.contains(option)) << option;
    for (const ImportKind kind :
         {ImportKind::hugging_face, ImportKind::megatron, ImportKind::torchtitan, ImportKind::trace}) {
      bool is_taken = true;
      try {
        check_choices("file", kind, choices);
      } catch (const InputError&) {
        is_taken = false;
      }
      EXPECT_EQ(is_taken, says(documented.at(option), kind)) << option << " and " << text_of(kind);
    }
  }
}

}  // namespace
}  // namespace tandem
