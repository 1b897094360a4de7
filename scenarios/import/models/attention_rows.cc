#include "scenarios/import/models/attention_rows.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

// Returns the window with as many pairs of tokens as there are within chunks, of which the last may be shorter.
std::int64_t window_of_chunks(std::int64_t tokens, std::int64_t chunk) {
  if (tokens <= chunk) return tokens;
  const auto pairs_of = [](double of) { return of * (of + 1) / 2; };
  const double pairs = static_cast<double>(tokens / chunk) * pairs_of(static_cast<double>(chunk)) +
                       pairs_of(static_cast<double>(tokens % chunk));
  // A window w has w tokens - w (w - 1) / 2 pairs.
  const double b = static_cast<double>(tokens) + 0.5;
  return std::max<std::int64_t>(1, std::llround(b - std::sqrt(b * b - 2 * pairs)));
}

using Followers = std::vector<std::string>;
using HeadNorm = AttentionSpec::HeadNorm;

class AttentionRows {
 public:
  AttentionRows(const TransformerSpec& spec, TableSize rows) : spec_(spec), rows_(rows) {}

  std::vector<TableRow> make(const AttentionSpec& spec, const Followers& then) && {
    attention(spec, then);
    return std::move(made_);
  }

 private:
  void add(TableRow row) { made_.push_back(std::move(row)); }
  void dense(const DenseRow& row) { add(dense_row(row, spec_.tokens)); }
  TableSize elements(std::int64_t columns) const { return rows_.times(columns); }

  void attention(const AttentionSpec& spec, const Followers& then) {
    if (spec.linear) return linear_attention(spec, then);
    if (spec.latent) {
      latent_products(spec);
    } else {
      products(spec);
    }
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    TableSize seen = rows_;
    if (const std::int64_t most = most_seen(spec); most < spec_.tokens) seen = {.number = most};
    const bool is_grouped = !spec.latent && spec.key_heads > 0 && spec.heads % spec.key_heads == 0;
    const std::int64_t sharing = is_grouped ? spec.heads / spec.key_heads : 1;
    Followers scores{"scale", "mask", "softmax"};
    if (spec_.dropout > 0) scores.emplace_back("dropout");
    add(batched_row({.name = "scores",
                     .rows = rows_,
                     .columns = seen,
                     .depth = {.number = spec.size},
                     .count = spec.heads,
                     .sharing = sharing,
                     .causal = spec_.is_causal,
                     .then = scores},
                    spec_.tokens));
    Followers context{"transpose"};
    if (spec.gated || spec.has_head_gate) context.emplace_back("gate");
    add(batched_row({.name = "context",
                     .rows = rows_,
                     .columns = {.number = value},
                     .depth = seen,
                     .count = spec.heads,
                     .sharing = sharing,
                     .causal = spec_.is_causal,
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

  // Returns the tokens that a token sees at most. Tokens that are chosen are as many pairs as those of a window, of
  // which the first tokens see fewer, too.
  std::int64_t most_seen(const AttentionSpec& spec) const {
    std::int64_t most = spec_.tokens;
    if (spec.window > 0) most = std::min(most, spec.window);
    if (spec.latent && spec.latent->chosen > 0) most = std::min(most, spec.latent->chosen);
    return spec.chunk > 0 ? std::min(most, window_of_chunks(spec_.tokens, spec.chunk)) : most;
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
    dense(row);
  }

  void products(const AttentionSpec& spec) {
    const std::int64_t hidden = spec_.hidden;
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    if (spec.query_rank > 0) {
      dense({.name = "query_down", .rows = rows_, .inputs = hidden, .outputs = spec.query_rank, .then = {"rms_norm"}});
    }
    if (spec.has_head_gate) dense({.name = "head_gate", .rows = rows_, .inputs = hidden, .outputs = spec.heads});
    product("query", spec.query_rank > 0 ? spec.query_rank : hidden, (spec.gated ? 2 : 1) * spec.heads * spec.size,
            spec.query_bias, spec, false);
    if (spec.key_heads == 0) return;  // it uses an earlier layer's keys and values
    product("key", hidden, spec.key_heads * spec.size, spec.key_bias, spec, false);
    if (!spec.value_is_key) product("value", hidden, spec.key_heads * value, spec.value_bias, spec, true);
  }

  void latent_products(const AttentionSpec& spec) {
    const AttentionSpec::Latent& latent = *spec.latent;
    const std::int64_t value = spec.value_size > 0 ? spec.value_size : spec.size;
    const Followers down = latent.has_bias ? Followers{"bias", "rms_norm"} : Followers{"rms_norm"};
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

  // Adds the queries and the one key of small heads that choose the tokens which attention sees. Their kernel keeps one
  // score for each pair of tokens, the weighted sum over the heads.
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
    TableRow scores = batched_row({.name = "index_scores",
                                   .rows = rows_,
                                   .columns = rows_,
                                   .depth = {.number = latent.index_heads * latent.index_size},
                                   .then = {"mask"}},
                                  spec_.tokens);
    scores.split.clear();
    add(scores);
  }

  // Products, a short convolution over tokens, and a state that every token reads and changes.
  void linear_attention(const AttentionSpec& spec, const Followers& then) {
    const AttentionSpec::Linear& linear = *spec.linear;
    dense({.name = "mixer_input", .rows = rows_, .inputs = spec_.hidden, .outputs = linear.projected});
    if (linear.convolved > 0) {
      add(elementwise_row("short_convolution", elements(linear.convolved), 4, 6, linear.more_parameters));
    } else {
      add(elementwise_row("mixer_norm", elements(linear.output), 2, 3, linear.more_parameters));
    }
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

  const TransformerSpec& spec_;
  TableSize rows_;
  std::vector<TableRow> made_;
};

}  // namespace

std::vector<TableRow> attention_rows(const TransformerSpec& spec, TableSize rows, const AttentionSpec& attention,
                                     const std::vector<std::string>& then) {
  return AttentionRows(spec, rows).make(attention, then);
}

}  // namespace tandem
