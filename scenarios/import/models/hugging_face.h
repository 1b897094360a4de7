// Reads the config.json of Hugging Face's transformers: docs/import.md lists the architectures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/json_value.h"
#include "scenarios/import/base/origins.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {

struct HuggingFaceModel {
  TransformerSpec spec;
  std::string lora{};                        // the value of workload.lora, as YAML; empty: all parameters learn
  std::string architecture;                  // its `model_type`
  std::int64_t groups = 0, used_groups = 0;  // of experts, to which routing is limited; 0: it is not
  std::vector<Origin> origins{};
  std::string dtype;                        // "bf16", or empty where the file says nothing
  std::optional<TransformerSpec> vision{};  // a tower beside the language model
  std::vector<std::string> assumed{};       // sentences
};

// How the assumption begins that blocks which predict further tokens are left out.
inline constexpr std::string_view kPredictorsAreLeftOut = "layers that predict more tokens";

// Reads a model whose sequences have this number of tokens; 0: as many as the model can take, at most 4,096. Throws
// InputError; the message for an unknown architecture names the nearest known one.
HuggingFaceModel read_hugging_face(const JsonValue& document, const std::string& file, std::int64_t tokens);

// Returns the known values of `model_type`, sorted.
std::vector<std::string> known_architectures();

}  // namespace tandem
