// Encoders of text and of images, as Hugging Face configures them, and the towers of images beside language models.
// Facts of huggingface/transformers, src/transformers/models/*/configuration_*.py and modeling_*.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/config_values.h"
#include "scenarios/import/transformer.h"

namespace tandem {

struct EncoderFamily {
  std::string_view name;
  TransformerSpec (*read)(const ConfigValues& config, const std::string& class_name);
};

const std::vector<EncoderFamily>& encoder_families();

// The tower that a `vision_config` describes, with the product into a language model of so wide a hidden state. Nothing
// for kinds that are not known.
std::optional<TransformerSpec> read_vision_tower(const ConfigValues& config, const std::string& model_type,
                                                 std::int64_t language_hidden);

}  // namespace tandem
