// A transformer described by the sizes that decide its parameters and its work. Configurations in different dialects
// are read into it, and a table of layers is made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/import/models/model_table.h"

namespace tandem {

enum class NormKind : std::uint8_t {
  rms,      // a weight
  layer,    // a weight and a bias
  weight,   // a layer norm without a bias
  centred,  // without parameters
};
enum class Activation : std::uint8_t { gelu, relu, silu };

struct AttentionSpec {
  // DeepSeek's latent attention: keys and values are made from a short vector.
  struct Latent {
    std::int64_t query_rank = 0;  // 0: queries are made from the input
    std::int64_t rank = 0;
    std::int64_t rotary = 0;                       // of a head's query and key
    bool has_bias = false;                         // of the products into the short vectors
    std::int64_t index_heads = 0, index_size = 0;  // DeepSeek v3.2's choice of tokens; 0: made by an earlier layer
    std::int64_t chosen = 0;                       // tokens that it chooses for each token; 0: attention sees all
    bool operator==(const Latent&) const = default;
  };
  enum class HeadNorm : std::uint8_t { none, per_head, whole, bias_per_head };

  std::int64_t heads = 1, key_heads = 1;
  std::int64_t size = 1;        // of a head's query and key
  std::int64_t value_size = 0;  // 0: size
  bool query_bias = false, key_bias = false, value_bias = false, output_bias = false;
  HeadNorm head_norm = HeadNorm::none;
  bool rotary = true;
  bool value_is_key = false;    // no product of its own
  bool gated = false;           // the query's product makes a gate as well
  bool has_head_gate = false;   // a gate for each head, by a product of its own
  bool has_sinks = false;       // a number for each head
  std::int64_t query_rank = 0;  // queries are made from so short a vector; 0: from the input
  std::int64_t window = 0;      // tokens that a token sees; 0: all
  std::int64_t chunk = 0;       // tokens of the parts of a sequence that do not see each other; 0: one part
  std::optional<Latent> latent{};
  // A mixer without a softmax in place of attention, whose state is `states` matrices: a gated delta rule, Mamba.
  struct Linear {
    std::int64_t projected = 0;  // outputs of the first product
    std::int64_t convolved = 0;  // of them, those that a short convolution mixes over tokens
    std::int64_t states = 1, state_rows = 1, state_columns = 1;
    std::int64_t output = 0;           // inputs of the last product
    std::int64_t more_parameters = 0;  // of the convolution, norms and scales
    bool operator==(const Linear&) const = default;
  };
  std::optional<Linear> linear{};
  bool operator==(const AttentionSpec&) const = default;
};

struct FeedForwardSpec {
  struct Experts {
    std::int64_t count = 0, used = 1, width = 0;
    std::int64_t shared_width = 0;  // of the experts that every token uses, together
    bool has_shared_gate = false;
    bool has_router_bias = false;
    bool has_bias = false;    // of each expert's products
    bool with_dense = false;  // beside a dense layer of `width`
    std::int64_t idle = 0;    // beside `count`: the router knows them, and they do nothing
    bool operator==(const Experts&) const = default;
  };
  std::int64_t width = 0;  // 0: none
  bool gated = true;
  bool up_bias = false, down_bias = false;
  Activation activation = Activation::silu;
  std::optional<Experts> experts{};
  bool operator==(const FeedForwardSpec&) const = default;
};

struct BlockSpec {
  enum class Norms : std::uint8_t {
    before,        // attention and feed-forward
    around,        // before and after each
    after,         // each, before the sum with the shortcut
    after_sum,     // each, as in the first transformers
    parallel_one,  // attention and feed-forward side by side, with one norm
    parallel_two,
  };
  std::optional<AttentionSpec> attention = AttentionSpec{};
  FeedForwardSpec feed_forward{};
  Norms norms = Norms::before;
  std::int64_t more_parameters = 0;  // scales, positions and others without products
  bool feed_forward_follows() const { return feed_forward.width > 0 || feed_forward.experts; }
  bool operator==(const BlockSpec&) const = default;
};

struct Blocks {
  std::int64_t copies = 1;
  BlockSpec block;
};

struct TransformerSpec {
  std::string name, source;
  std::int64_t tokens = 0;        // of an example
  bool has_fixed_tokens = false;  // images: as many as there are patches
  std::int64_t hidden = 0;
  bool is_causal = false;  // no token sees a later one
  NormKind norm = NormKind::rms;
  std::vector<Blocks> blocks{};
  // Blocks like the last one that predict further tokens, each from what the block before it has made and the embedding
  // of the next token, with the same product with the vocabulary (DeepSeek-V3, arXiv:2412.19437, section 2.2).
  std::int64_t predictors = 0;

  std::int64_t vocabulary = 0;
  std::int64_t more_entries = 0;     // positions, segments: rows of tables of embeddings beside the vocabulary's
  std::int64_t embedding_width = 0;  // 0: hidden; else a product leads to hidden
  bool projection_has_bias = false;
  bool embedding_norm = false;
  double dropout = 0;

  struct Image {
    std::int64_t size = 0, patch = 0, channels = 3;
    std::int64_t more_tokens = 0;  // a class's
    bool has_bias = true;
    std::int64_t positions = 0;  // rows of their table
    bool norm_before = false;    // between embeddings and blocks
    bool operator==(const Image&) const = default;
  };
  std::optional<Image> image{};

  bool final_norm = true;
  struct Pooler {
    bool present = false;
  } pooler{};
  enum class Head : std::uint8_t { none, language, masked_language, classes };
  Head head = Head::language;
  bool tied = false;
  bool head_bias = false;
  std::int64_t classes = 0;
  bool classes_have_dense = false;  // a product before that of the classes
  std::int64_t more_parameters = 0;
};

ModelTable table_of(const TransformerSpec& spec);

}  // namespace tandem
