// Encoders of text and of images, as Hugging Face configures them, and the vision towers of language models. Facts from
// huggingface/transformers, src/transformers/models/*/configuration_*.py and modeling_*.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/models/config_values.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {

struct EncoderFamily {
  std::string_view name;
  TransformerSpec (*read)(const ConfigValues& config, const std::string& class_name);
};

const std::vector<EncoderFamily>& encoder_families();

// Returns the tower that a `vision_config` describes, with the product into a language model whose hidden state is
// `language_hidden` wide. Returns nothing for unknown kinds.
std::optional<TransformerSpec> read_vision_tower(const ConfigValues& config, const std::string& model_type,
                                                 std::int64_t language_hidden);

}  // namespace tandem
