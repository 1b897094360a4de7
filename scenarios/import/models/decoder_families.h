// The architectures of language models by their `model_type`: what each has besides the sizes in its configuration.
// Facts from huggingface/transformers, src/transformers/models/*/configuration_*.py and modeling_*.py.
#pragma once

#include <string_view>
#include <vector>

#include "scenarios/import/models/config_values.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {

// How the language models of a family differ from Llama.
struct DecoderFamily {
  std::string_view name{};
  bool tied = false;  // where the file does not say
  NormKind norm = NormKind::rms;
  BlockSpec::Norms norms = BlockSpec::Norms::before;
  // Biases of attention: none, of every product, or of queries, keys and values only. A key such as `attention_bias` in
  // the file takes precedence.
  enum class Bias : std::uint8_t { none, all, inputs } bias = Bias::none;
  enum class BiasKey : std::uint8_t { none, all, inputs } bias_key = BiasKey::none;  // what `attention_bias` is about
  bool feed_forward_bias = false;
  bool gated = true;
  Activation activation = Activation::silu;
  AttentionSpec::HeadNorm head_norm = AttentionSpec::HeadNorm::none;
  bool positions = false;  // a table of them
  bool experts = false;
  void (*adapt)(const ConfigValues& config, TransformerSpec& spec) = nullptr;  // what is particular
};

const std::vector<DecoderFamily>& decoder_families();

// Returns the specification without image, name and source.
TransformerSpec read_decoder(const ConfigValues& config, const DecoderFamily& family);

// Combines equal consecutive specifications of layers into blocks with copies.
std::vector<Blocks> runs_of(const std::vector<BlockSpec>& blocks);
// Returns one specification for each layer.
std::vector<BlockSpec> layers_of(const TransformerSpec& spec);

}  // namespace tandem
