// Changes to every layer of a specification, for the adapters of families.
#pragma once

#include "scenarios/import/models/transformer.h"

namespace tandem {

template <typename Do>
void each_attention(TransformerSpec& spec, Do change) {
  for (Blocks& blocks : spec.blocks) {
    if (blocks.block.attention) change(*blocks.block.attention);
  }
}

template <typename Do>
void each_experts(TransformerSpec& spec, Do change) {
  for (Blocks& blocks : spec.blocks) {
    if (blocks.block.feed_forward.experts) change(*blocks.block.feed_forward.experts);
  }
}

inline void set_biases(TransformerSpec& spec, bool inputs, bool output) {
  each_attention(spec, [&](AttentionSpec& attention) {
    attention.query_bias = attention.key_bias = attention.value_bias = inputs;
    attention.output_bias = output;
  });
}

inline void set_feed_forward_bias(TransformerSpec& spec, bool bias) {
  for (Blocks& blocks : spec.blocks) blocks.block.feed_forward.up_bias = blocks.block.feed_forward.down_bias = bias;
}

inline void set_norms(TransformerSpec& spec, BlockSpec::Norms norms) {
  for (Blocks& blocks : spec.blocks) blocks.block.norms = norms;
}

inline void set_width(TransformerSpec& spec, std::int64_t width) {
  for (Blocks& blocks : spec.blocks) blocks.block.feed_forward.width = width;
}

inline void set_key_heads(TransformerSpec& spec, std::int64_t heads) {
  each_attention(spec, [&](AttentionSpec& attention) { attention.key_heads = heads; });
}

}  // namespace tandem
