#include <fmt/format.h>

#include "scenarios/import/transformer.h"

namespace tandem {
namespace {

using Then = std::vector<std::string>;
using Norms = BlockSpec::Norms;
using HeadNorm = AttentionSpec::HeadNorm;

void append(Then& then, const Then& more) {
  then.insert(then.end(), more.begin(), more.end());
}

// The rows of a transformer, in forward order. A block's first norm is done to the output of what comes before it, so
// that a block ends with the next one's, and the last one with the final norm.
class TransformerTable {
 public:
  explicit TransformerTable(const TransformerSpec& spec)
      : spec_(spec),
        table_(spec.name, spec.source, spec.tokens),
        rows_{.factor = spec.has_fixed_tokens ? 0 : 1, .number = spec.has_fixed_tokens ? spec.tokens : 0} {
    if (spec.norm == NormKind::rms || spec.norm == NormKind::weight) norm_ = {"rms_norm"};
    if (spec.norm == NormKind::layer) norm_ = {"layer_norm"};
    if (spec.dropout > 0) dropout_ = {"dropout"};
  }

  ModelTable make() && {
    table_.has_tokens = !spec_.has_fixed_tokens;
    if (spec_.image) {
      table_.unit = "images";
      table_.input = spec_.image->size * spec_.image->size * spec_.image->channels;
    }
    embeddings();
    std::int64_t first = 0;
    for (std::size_t i = 0; i < spec_.blocks.size(); ++i) {
      const Blocks& blocks = spec_.blocks[i];
      next_norms_ = norms_before(i + 1);
      group_ = {.name = "block", .first = first, .copies = blocks.copies};
      // The last block of a run is followed by another kind of block or by the end.
      const bool differs = next_norms_ != norms_before(i) && blocks.copies > 1;
      if (differs) {
        const Then last = next_norms_;
        next_norms_ = norms_before(i);
        group_.copies = blocks.copies - 1;
        block(blocks.block);
        flush();
        next_norms_ = last;
        group_ = {.name = "block", .first = first + blocks.copies - 1, .copies = 1};
      }
      block(blocks.block);
      flush();
      first += blocks.copies;
    }
    head();
    return std::move(table_);
  }

 private:
  void add(TableRow row) { group_.rows.push_back(std::move(row)); }
  void flush() {
    if (!group_.rows.empty()) table_.groups.push_back(std::move(group_));
    group_ = {};
  }
  void dense(DenseRow row) { add(dense_row(row, spec_.tokens)); }
  TableSize elements(std::int64_t columns) const { return rows_.times(columns); }

  // The norms between what comes before block `index` and that block; at the end the final norm.
  Then norms_before(std::size_t index) const {
    if (index >= spec_.blocks.size()) return spec_.final_norm ? norm_ : Then{};
    const Norms norms = spec_.blocks[index].block.norms;
    if (norms == Norms::after || norms == Norms::after_sum) return {};
    Then then = norm_;
    if (norms == Norms::parallel_two) append(then, norm_);
    return then;
  }

  void embeddings() {
    Then first;
    if (spec_.more_entries > 0) first.emplace_back("residual");
    if (spec_.image) return image_embeddings();
    const bool is_projected = spec_.embedding_width > 0 && spec_.embedding_width != spec_.hidden;
    Then after = spec_.embedding_norm ? norm_ : Then{};
    append(after, dropout_);
    const Then before = norms_before(0);
    if (!is_projected) {
      append(first, after);
      append(first, before);
    } else if (spec_.embedding_norm) {
      append(first, after);
    }
    const std::int64_t columns = is_projected ? spec_.embedding_width : spec_.hidden;
    add(embedding_row("embeddings", rows_, columns, spec_.vocabulary + spec_.more_entries, first, spec_.tokens));
    if (is_projected) {
      Then then = spec_.projection_has_bias ? Then{"bias"} : Then{};
      append(then, before);
      dense({.name = "embedding_projection", .rows = rows_, .inputs = columns, .outputs = spec_.hidden, .then = then});
    }
    flush();
  }

  void image_embeddings() {
    const TransformerSpec::Image& image = *spec_.image;
    Then then = image.has_bias ? Then{"bias"} : Then{};
    then.emplace_back("residual");
    if (image.norm_before) append(then, norm_);
    append(then, norms_before(0));
    add(patches_row("patches", image.size, image.channels, spec_.hidden, image.patch, then));
    const std::int64_t tables = (image.positions + image.more_tokens) * spec_.hidden;
    add(elementwise_row("positions", elements(spec_.hidden), 3, 3, tables));
    flush();
  }

  void block(const BlockSpec& spec) {
    if (spec.attention) {
      Then then;
      const bool is_parallel = spec.norms == Norms::parallel_one || spec.norms == Norms::parallel_two;
      if (spec.attention->output_bias) then.emplace_back("bias");
      append(then, dropout_);
      if (spec.norms == Norms::around || spec.norms == Norms::after) append(then, norm_);
      if (!is_parallel) then.emplace_back("residual");
      if (spec.norms != Norms::after && !is_parallel && spec.feed_forward_follows()) append(then, norm_);
      if (!spec.feed_forward_follows()) append(then, next_norms_);
      attention(*spec.attention, then);
    }
    if (spec.more_parameters > 0) {
      add(elementwise_row("scales", elements(spec_.hidden), 2, 3, spec.more_parameters));
    }
    if (spec.feed_forward_follows()) feed_forward(spec);
  }

  void attention(const AttentionSpec& spec, const Then& then) {
    if (spec.linear) return linear_attention(spec, then);
    if (spec.latent) {
      latent_products(spec);
    } else {
      products(spec);
    }
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    TableSize seen = rows_;
    if (spec.window > 0 && spec.window < spec_.tokens) seen = {.number = spec.window};
    const bool is_grouped = !spec.latent && spec.key_heads > 0 && spec.heads % spec.key_heads == 0;
    const std::int64_t sharing = is_grouped ? spec.heads / spec.key_heads : 1;
    Then scores{"scale", "mask", "softmax"};
    append(scores, dropout_);
    add(batched_row({.name = "scores",
                     .rows = rows_,
                     .columns = seen,
                     .depth = {.number = spec.size},
                     .count = spec.heads,
                     .sharing = sharing,
                     .then = scores},
                    spec_.tokens));
    Then context{"transpose"};
    if (spec.gated) context.emplace_back("gate");
    add(batched_row({.name = "context",
                     .rows = rows_,
                     .columns = {.number = value},
                     .depth = seen,
                     .count = spec.heads,
                     .sharing = sharing,
                     .then = context},
                    spec_.tokens));
    dense({.name = "attention_output",
           .rows = rows_,
           .inputs = spec.heads * value,
           .outputs = spec_.hidden,
           .then = then,
           .split = "rows"});
    if (spec.has_sinks) add(elementwise_row("sinks", {.number = spec.heads}, 2, 2, spec.heads));
  }

  void product(const char* name, std::int64_t inputs, std::int64_t outputs, bool bias, const AttentionSpec& spec,
               bool is_value) {
    DenseRow row{.name = name, .rows = rows_, .inputs = inputs, .outputs = outputs, .split = "columns"};
    if (bias) row.then.emplace_back("bias");
    const bool is_normed = spec.head_norm != HeadNorm::none && !is_value;
    if (is_normed) row.then.emplace_back(spec.head_norm == HeadNorm::bias_per_head ? "layer_norm" : "rms_norm");
    if (is_normed && spec.head_norm != HeadNorm::whole) row.norm_size = spec.size;
    row.then.emplace_back("transpose");
    if (spec.rotary && !is_value) row.then.emplace_back("rotary");
    dense(std::move(row));
  }

  void products(const AttentionSpec& spec) {
    const std::int64_t hidden = spec_.hidden;
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    product("query", hidden, (spec.gated ? 2 : 1) * spec.heads * spec.size, spec.query_bias, spec, false);
    if (spec.key_heads == 0) return;  // an earlier layer's
    product("key", hidden, spec.key_heads * spec.size, spec.key_bias, spec, false);
    if (!spec.value_is_key) product("value", hidden, spec.key_heads * value, spec.value_bias, spec, true);
  }

  void latent_products(const AttentionSpec& spec) {
    const AttentionSpec::Latent& latent = *spec.latent;
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    const Then down = latent.has_bias ? Then{"bias", "rms_norm"} : Then{"rms_norm"};
    if (latent.query_rank > 0) {
      dense({.name = "query_down", .rows = rows_, .inputs = spec_.hidden, .outputs = latent.query_rank, .then = down});
    }
    dense({.name = "key_value_down",
           .rows = rows_,
           .inputs = spec_.hidden,
           .outputs = latent.rank + latent.rotary,
           .then = down,
           .norm_size = latent.rank});
    if (latent.index_heads > 0) index_products(latent);
    const std::int64_t inputs = latent.query_rank > 0 ? latent.query_rank : spec_.hidden;
    dense({.name = "query",
           .rows = rows_,
           .inputs = inputs,
           .outputs = spec.heads * spec.size,
           .then = {"transpose", "rotary"},
           .split = "columns"});
    dense({.name = "key_value",
           .rows = rows_,
           .inputs = latent.rank,
           .outputs = spec.heads * (spec.size - latent.rotary + value),
           .then = {"transpose"},
           .split = "columns"});
  }

  // Queries and one key of small heads, which choose the tokens that attention sees.
  void index_products(const AttentionSpec::Latent& latent) {
    dense({.name = "index_query",
           .rows = rows_,
           .inputs = latent.query_rank,
           .outputs = latent.index_heads * latent.index_size,
           .then = {"rotary"}});
    dense({.name = "index_key",
           .rows = rows_,
           .inputs = spec_.hidden,
           .outputs = latent.index_size,
           .then = {"layer_norm", "rotary"}});
    dense({.name = "index_weights", .rows = rows_, .inputs = spec_.hidden, .outputs = latent.index_heads});
  }

  // Products, a short convolution over tokens, and a state that every token reads and changes.
  void linear_attention(const AttentionSpec& spec, const Then& then) {
    const AttentionSpec::Linear& linear = *spec.linear;
    dense({.name = "mixer_input", .rows = rows_, .inputs = spec_.hidden, .outputs = linear.projected});
    add(elementwise_row("short_convolution", elements(linear.convolved), 4, 6, linear.more_parameters));
    TableRow state = batched_row({.name = "state",
                                  .rows = rows_,
                                  .columns = {.number = linear.state_columns},
                                  .depth = {.number = 2 * linear.state_rows},
                                  .count = linear.states},
                                 spec_.tokens);
    state.split.clear();
    add(state);
    dense({.name = "mixer_output", .rows = rows_, .inputs = linear.output, .outputs = spec_.hidden, .then = then});
  }

  Then after_feed_forward(const BlockSpec& spec) const {
    Then then;
    if (spec.feed_forward.down_bias && !spec.feed_forward.experts) then.emplace_back("bias");
    append(then, dropout_);
    if (spec.norms == Norms::around || spec.norms == Norms::after) append(then, norm_);
    then.emplace_back("residual");
    if (spec.norms == Norms::parallel_one || spec.norms == Norms::parallel_two) then.emplace_back("residual");
    if (spec.norms == Norms::after_sum) append(then, norm_);
    append(then, next_norms_);
    return then;
  }

  void feed_forward(const BlockSpec& spec) {
    const FeedForwardSpec& feed = spec.feed_forward;
    const Then then = after_feed_forward(spec);
    if (!feed.experts) return two_layers("", rows_, feed.width, feed, then);
    const FeedForwardSpec::Experts& experts = *feed.experts;
    if (experts.with_dense) two_layers("", rows_, feed.width, feed, {});
    Then router = experts.has_router_bias ? Then{"bias", "softmax"} : Then{"softmax"};
    dense({.name = "router", .rows = rows_, .inputs = spec_.hidden, .outputs = experts.count, .then = router});
    if (experts.shared_width > 0) two_layers("shared_", rows_, experts.shared_width, feed, {});
    if (experts.has_shared_gate) dense({.name = "shared_gate", .rows = rows_, .inputs = spec_.hidden, .outputs = 1});
    expert_layers(feed, then);
  }

  void two_layers(const std::string& prefix, TableSize rows, std::int64_t width, const FeedForwardSpec& feed,
                  const Then& then) {
    const Then bias = feed.up_bias ? Then{"bias"} : Then{};
    Then activated = bias;
    activated.emplace_back(feed.gated ? "gate" : feed.activation == Activation::relu ? "relu" : "gelu");
    if (feed.gated)
      dense({.name = prefix + "gate",
             .rows = rows,
             .inputs = spec_.hidden,
             .outputs = width,
             .then = bias,
             .split = "columns"});
    dense({.name = prefix + "up",
           .rows = rows,
           .inputs = spec_.hidden,
           .outputs = width,
           .then = activated,
           .split = "columns"});
    dense({.name = prefix + "down",
           .rows = rows,
           .inputs = width,
           .outputs = spec_.hidden,
           .then = then,
           .split = "rows"});
  }

  void expert_layers(const FeedForwardSpec& feed, const Then& then) {
    const FeedForwardSpec::Experts& experts = *feed.experts;
    const TableSize rows = rows_.times(experts.used);
    const std::int64_t hidden = spec_.hidden;
    add(elementwise_row("dispatch", rows.times(hidden), 2, 2, 0));
    DenseRow up{.name = "expert_up",
                .rows = rows,
                .inputs = hidden,
                .outputs = experts.width,
                .experts = experts.count,
                .used_experts = experts.used,
                .split = "columns"};
    DenseRow down{.name = "expert_down",
                  .rows = rows,
                  .inputs = experts.width,
                  .outputs = hidden,
                  .experts = experts.count,
                  .used_experts = experts.used,
                  .split = "rows"};
    if (feed.gated) {
      DenseRow gate = up;
      gate.name = "expert_gate";
      dense(gate);
    }
    up.then.emplace_back(feed.gated ? "gate" : feed.activation == Activation::relu ? "relu" : "gelu");
    dense(up);
    dense(down);
    std::int64_t more = experts.more_parameters;
    if (experts.has_bias) more += experts.count * (experts.width * (feed.gated ? 2 : 1) + hidden);
    add(elementwise_row("combine", rows.times(hidden), 2, 2, more));
    // What is done to the sum of the experts' outputs.
    TableRow sum = elementwise_row("sum", elements(hidden), 3, 4, 0);
    for (const std::string& operation : then) {
      if (operation == "rms_norm") sum.weights += hidden;
      if (operation == "layer_norm") sum.weights += 2 * hidden;
    }
    add(elementwise_row("sum", elements(hidden), 3, 4, sum.weights));
  }

  void head() {
    if (spec_.pooler.present) {
      dense(
          {.name = "pooler", .rows = {.number = 1}, .inputs = spec_.hidden, .outputs = spec_.hidden, .then = {"bias"}});
    }
    switch (spec_.head) {
      case TransformerSpec::Head::none:
        break;
      case TransformerSpec::Head::classes:
        if (spec_.classes_have_dense) {
          dense({.name = "classifier_dense",
                 .rows = {.number = 1},
                 .inputs = spec_.hidden,
                 .outputs = spec_.hidden,
                 .then = {"bias"}});
        }
        dense({.name = "classifier",
               .rows = {.number = 1},
               .inputs = spec_.hidden,
               .outputs = spec_.classes,
               .then = {"bias", "cross_entropy"}});
        break;
      case TransformerSpec::Head::masked_language:
      case TransformerSpec::Head::language:
        language_head();
        break;
    }
    if (spec_.more_parameters > 0) {
      add(elementwise_row("other", {.number = spec_.more_parameters}, 2, 2, spec_.more_parameters));
    }
    flush();
  }

  void language_head() {
    const std::int64_t width = spec_.embedding_width > 0 ? spec_.embedding_width : spec_.hidden;
    if (spec_.head == TransformerSpec::Head::masked_language) {
      Then then{"bias", "gelu"};
      append(then, norm_);
      dense({.name = "head_dense", .rows = rows_, .inputs = spec_.hidden, .outputs = width, .then = then});
    } else if (width != spec_.hidden) {
      dense({.name = "head_projection",
             .rows = rows_,
             .inputs = spec_.hidden,
             .outputs = width,
             .then = spec_.projection_has_bias ? Then{"bias"} : Then{}});
    }
    DenseRow row{.name = "head",
                 .rows = rows_,
                 .inputs = width,
                 .outputs = spec_.vocabulary,
                 .shared_weights = spec_.tied,
                 .split = "columns"};
    if (spec_.head_bias) row.then.emplace_back("bias");
    row.then.emplace_back("cross_entropy");
    dense(row);
  }

  const TransformerSpec& spec_;
  ModelTable table_;
  TableSize rows_;
  Then norm_, dropout_;
  Then next_norms_;  // what the next block begins with
  TableGroup group_;
};

}  // namespace

ModelTable table_of(const TransformerSpec& spec) {
  return TransformerTable(spec).make();
}

}  // namespace tandem
