#include "scenarios/import/models/encoder_families.h"

#include <algorithm>

namespace tandem {
namespace {

using Head = TransformerSpec::Head;
using Norms = BlockSpec::Norms;
using HeadNorm = AttentionSpec::HeadNorm;

bool ends_in(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::int64_t labels_of(const ConfigValues& config) {
  const auto labels = config.map({"id2label"});
  const auto count = labels ? static_cast<std::int64_t>(labels->object().members.size()) : 2;
  return config.size({"num_labels"}, std::max<std::int64_t>(1, count));
}

struct EncoderSizes {
  std::int64_t layers = 0, heads = 0, width = 0;
};

EncoderSizes sizes_of(const ConfigValues& config, std::int64_t hidden) {
  return {.layers = config.size({"num_hidden_layers", "n_layers", "num_layers", "depth"}),
          .heads = config.size({"num_attention_heads", "n_heads", "num_heads"}),
          .width = config.size({"intermediate_size", "hidden_dim"}, 4 * hidden)};
}

// A block with biases everywhere and no gate.
BlockSpec plain_block(std::int64_t hidden, const EncoderSizes& sizes) {
  AttentionSpec attention;
  attention.heads = attention.key_heads = sizes.heads;
  attention.size = std::max<std::int64_t>(1, hidden / sizes.heads);
  attention.query_bias = attention.key_bias = attention.value_bias = attention.output_bias = true;
  attention.rotary = false;
  return {
      .attention = attention,
      .feed_forward = {
          .width = sizes.width, .gated = false, .up_bias = true, .down_bias = true, .activation = Activation::gelu}};
}

// Sets the part after the blocks: classes, or masked words.
void set_head(const ConfigValues& config, const std::string& class_name, TransformerSpec& spec) {
  if (ends_in(class_name, "MaskedLM") || ends_in(class_name, "PreTraining")) {
    spec.head = Head::masked_language;
    spec.tied = config.boolean({"tie_word_embeddings"}, true);
    spec.head_bias = true;
    spec.pooler.present = ends_in(class_name, "PreTraining");
    spec.more_parameters += spec.pooler.present ? 2 * spec.hidden + 2 : 0;  // whether a sentence follows
  } else if (ends_in(class_name, "Classification") || ends_in(class_name, "QuestionAnswering")) {
    spec.head = Head::classes;
    spec.classes = ends_in(class_name, "QuestionAnswering") ? 2 : labels_of(config);
    spec.pooler.present = ends_in(class_name, "SequenceClassification");
  } else {
    spec.head = Head::none;
    spec.pooler.present = true;
  }
}

TransformerSpec read_bert(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec;
  spec.norm = NormKind::layer;
  spec.hidden = config.size({"hidden_size", "dim"});
  spec.vocabulary = config.size({"vocab_size"});
  spec.more_entries = config.count({"max_position_embeddings"}, 512) + config.count({"type_vocab_size"}, 2);
  spec.embedding_norm = true;
  spec.final_norm = false;
  spec.dropout = config.number({"hidden_dropout_prob", "dropout"}, 0.1);
  spec.embedding_width = config.size({"embedding_size"}, spec.hidden);
  spec.projection_has_bias = true;
  const EncoderSizes sizes = sizes_of(config, spec.hidden);
  BlockSpec block = plain_block(spec.hidden, sizes);
  block.norms = Norms::after_sum;
  spec.blocks = {{.copies = sizes.layers, .block = block}};
  set_head(config, class_name, spec);
  return spec;
}

TransformerSpec read_roberta(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_bert(config, class_name);
  if (spec.head == Head::classes) {
    spec.pooler.present = false;
    spec.classes_have_dense = ends_in(class_name, "SequenceClassification");
  }
  return spec;
}

TransformerSpec read_distilbert(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_bert(config, class_name);
  spec.more_entries = config.count({"max_position_embeddings"}, 512);
  spec.pooler.present = false;
  spec.classes_have_dense = ends_in(class_name, "SequenceClassification");
  return spec;
}

TransformerSpec read_electra(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_bert(config, class_name);
  spec.pooler.present = false;
  if (ends_in(class_name, "PreTraining")) {  // the discriminator: a word is the right one or not
    spec.head = Head::none;
    spec.more_parameters = spec.hidden * spec.hidden + 2 * spec.hidden + 1;
  }
  return spec;
}

TransformerSpec read_mpnet(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_roberta(config, class_name);
  spec.more_entries = config.count({"max_position_embeddings"}, 512);
  spec.more_parameters += config.count({"relative_attention_num_buckets"}, 32) * spec.blocks[0].block.attention->heads;
  return spec;
}

// Positions are relative, and have a table of their own.
TransformerSpec read_deberta_v2(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_bert(config, class_name);
  const std::int64_t positions = config.count({"max_position_embeddings"}, 512);
  spec.more_entries = config.count({"type_vocab_size"}, 0);
  if (config.boolean({"position_biased_input"}, true)) spec.more_entries += positions;
  if (spec.head != Head::classes) spec.pooler.present = false;
  if (config.boolean({"relative_attention"}, false)) {
    const JsonValue* stated = config.find({"position_buckets"});
    const bool has_buckets = stated != nullptr && !stated->text.starts_with('-');
    const std::int64_t span = has_buckets ? config.count({"position_buckets"}, positions) : positions;
    spec.more_parameters += 2 * span * spec.hidden;
    if (config.text({"norm_rel_ebd"}) == "layer_norm") spec.more_parameters += 2 * spec.hidden;
  }
  return spec;
}

TransformerSpec read_modernbert(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = read_bert(config, class_name);
  spec.norm = config.boolean({"norm_bias"}, false) ? NormKind::layer : NormKind::weight;
  spec.more_entries = 0;
  spec.final_norm = true;
  spec.dropout = 0;
  spec.pooler.present = false;
  BlockSpec& block = spec.blocks[0].block;
  block.norms = Norms::before;
  AttentionSpec& attention = *block.attention;
  const bool bias = config.boolean({"attention_bias"}, false);
  attention.query_bias = attention.key_bias = attention.value_bias = attention.output_bias = bias;
  attention.rotary = true;
  block.feed_forward.gated = true;
  block.feed_forward.up_bias = block.feed_forward.down_bias = config.boolean({"mlp_bias"}, false);
  // The first block has no norm before its attention. It is counted with one, in place of the embeddings' norm.
  spec.embedding_norm = false;
  return spec;
}

// The tokens are patches and, in most models, a class token.
TransformerSpec image_spec(const ConfigValues& config, std::int64_t class_tokens) {
  TransformerSpec spec;
  spec.norm = NormKind::layer;
  spec.hidden = config.size({"hidden_size", "embed_dim"});
  spec.has_fixed_tokens = true;
  TransformerSpec::Image image{.size = config.size({"image_size"}, 224),
                               .patch = config.size({"patch_size"}, 16),
                               .channels = config.size({"num_channels"}, 3),
                               .more_tokens = class_tokens};
  if (image.patch > image.size || image.size > 16384) {
    config.fail(config.object(), "patch_size", "must be at most the image's size, which is at most 16384");
  }
  const std::int64_t patches = (image.size / image.patch) * (image.size / image.patch);
  image.positions = patches + class_tokens;
  spec.image = image;
  spec.tokens = patches + class_tokens;
  const EncoderSizes sizes = sizes_of(config, spec.hidden);
  BlockSpec block = plain_block(spec.hidden, sizes);
  const bool bias = config.boolean({"qkv_bias"}, true);
  block.attention->query_bias = block.attention->key_bias = block.attention->value_bias = bias;
  spec.blocks = {{.copies = sizes.layers, .block = block}};
  spec.head = Head::none;
  return spec;
}

void set_image_head(const ConfigValues& config, const std::string& class_name, bool pooler, TransformerSpec& spec) {
  if (ends_in(class_name, "Classification")) {
    spec.head = Head::classes;
    spec.classes = labels_of(config);
  } else {
    spec.pooler.present = pooler;
  }
}

TransformerSpec read_vit(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = image_spec(config, 1);
  set_image_head(config, class_name, true, spec);
  return spec;
}

TransformerSpec read_deit(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = image_spec(config, 2);
  set_image_head(config, class_name, true, spec);
  return spec;
}

TransformerSpec read_dinov2(const ConfigValues& config, const std::string& class_name) {
  TransformerSpec spec = image_spec(config, 1);
  BlockSpec& block = spec.blocks[0].block;
  const auto ratio = static_cast<std::int64_t>(config.number({"mlp_ratio"}, 4));
  block.feed_forward.width = ratio * spec.hidden;
  if (config.boolean({"use_swiglu_ffn"}, false)) {
    block.feed_forward.gated = true;
    block.feed_forward.width = (block.feed_forward.width * 2 / 3 + 7) / 8 * 8;
  }
  block.more_parameters = 2 * spec.hidden;  // scales of both parts
  spec.more_parameters = spec.hidden;       // what replaces a masked patch
  if (ends_in(class_name, "Classification")) {
    spec.head = Head::classes;
    spec.classes = labels_of(config);
    spec.more_parameters += spec.classes * spec.hidden;  // the class's token and the mean of the patches
  }
  return spec;
}

TransformerSpec read_siglip_vision(const ConfigValues& config, const std::string&) {
  TransformerSpec spec = image_spec(config, 0);
  if (config.boolean({"vision_use_head"}, true)) {  // attention over the patches by one learned query
    const std::int64_t h = spec.hidden, width = spec.blocks[0].block.feed_forward.width;
    spec.more_parameters = h + 4 * (h * h + h) + 2 * h + 2 * h * width + width + h;
  }
  return spec;
}

TransformerSpec read_clip_vision(const ConfigValues& config, const std::string&) {
  TransformerSpec spec = image_spec(config, 1);
  spec.image->has_bias = false;
  spec.image->norm_before = true;
  return spec;
}

TransformerSpec without_biases(TransformerSpec spec) {
  BlockSpec& block = spec.blocks[0].block;
  AttentionSpec& attention = *block.attention;
  attention.query_bias = attention.key_bias = attention.value_bias = attention.output_bias = false;
  attention.rotary = true;
  block.feed_forward.up_bias = block.feed_forward.down_bias = false;
  block.feed_forward.gated = true;
  spec.norm = NormKind::rms;
  spec.image->has_bias = false;
  return spec;
}

TransformerSpec read_pixtral(const ConfigValues& config, const std::string&) {
  TransformerSpec spec = without_biases(image_spec(config, 0));
  spec.image->positions = 0;
  spec.image->norm_before = true;
  spec.final_norm = false;
  return spec;
}

TransformerSpec read_gemma4_vision(const ConfigValues& config, const std::string&) {
  TransformerSpec spec = without_biases(image_spec(config, 0));
  spec.image->positions = 2 * config.size({"position_embedding_size"}, 10240);
  spec.blocks[0].block.norms = Norms::around;
  spec.blocks[0].block.attention->head_norm = HeadNorm::per_head;
  spec.final_norm = false;
  return spec;
}

}  // namespace

const std::vector<EncoderFamily>& encoder_families() {
  static const std::vector<EncoderFamily> families{{"bert", read_bert},
                                                   {"roberta", read_roberta},
                                                   {"xlm-roberta", read_roberta},
                                                   {"camembert", read_roberta},
                                                   {"distilbert", read_distilbert},
                                                   {"electra", read_electra},
                                                   {"mpnet", read_mpnet},
                                                   {"deberta-v2", read_deberta_v2},
                                                   {"modernbert", read_modernbert},
                                                   {"vit", read_vit},
                                                   {"deit", read_deit},
                                                   {"dinov2", read_dinov2},
                                                   {"siglip_vision_model", read_siglip_vision},
                                                   {"clip_vision_model", read_clip_vision},
                                                   {"pixtral", read_pixtral},
                                                   {"gemma4_vision", read_gemma4_vision}};
  return families;
}

}  // namespace tandem
