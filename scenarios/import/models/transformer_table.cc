#include <fmt/format.h>

#include "scenarios/import/models/attention_rows.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {
namespace {

using Followers = std::vector<std::string>;
using Norms = BlockSpec::Norms;

void append(Followers& then, const Followers& more) {
  then.insert(then.end(), more.begin(), more.end());
}

// The rows of a transformer, in forward order. A block's first norm is applied to the output of what precedes it, so
// each block ends with the first norm of the next one, and the last block with the final norm.
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
        const Followers last = next_norms_;
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
    for (std::int64_t i = 0; i < spec_.predictors; ++i) predictor(first + i);
    head();
    return std::move(table_);
  }

 private:
  void add(TableRow row) { group_.rows.push_back(std::move(row)); }
  void flush() {
    if (!group_.rows.empty()) table_.groups.push_back(std::move(group_));
    group_ = {};
  }
  void dense(const DenseRow& row) { add(dense_row(row, spec_.tokens)); }
  TableSize elements(std::int64_t columns) const { return rows_.times(columns); }

  // Returns the norms between block `index` and what precedes it; after the last block, the final norm.
  Followers norms_before(std::size_t index) const {
    if (index >= spec_.blocks.size()) return spec_.final_norm ? norm_ : Followers{};
    const Norms norms = spec_.blocks[index].block.norms;
    if (norms == Norms::after || norms == Norms::after_sum) return {};
    Followers then = norm_;
    if (norms == Norms::parallel_two) append(then, norm_);
    return then;
  }

  void embeddings() {
    Followers first;
    if (spec_.more_entries > 0) first.emplace_back("residual");
    if (spec_.image) return image_embeddings();
    const bool is_projected = spec_.embedding_width > 0 && spec_.embedding_width != spec_.hidden;
    Followers after = spec_.embedding_norm ? norm_ : Followers{};
    append(after, dropout_);
    const Followers before = norms_before(0);
    if (!is_projected) {
      append(first, after);
      append(first, before);
    } else if (spec_.embedding_norm) {
      append(first, after);
    }
    const std::int64_t columns = is_projected ? spec_.embedding_width : spec_.hidden;
    add(embedding_row("embeddings", rows_, columns, spec_.vocabulary + spec_.more_entries, first, spec_.tokens));
    if (is_projected) {
      Followers then = spec_.projection_has_bias ? Followers{"bias"} : Followers{};
      append(then, before);
      dense({.name = "embedding_projection", .rows = rows_, .inputs = columns, .outputs = spec_.hidden, .then = then});
    }
    flush();
  }

  void image_embeddings() {
    const TransformerSpec::Image& image = *spec_.image;
    Followers then = image.has_bias ? Followers{"bias"} : Followers{};
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
      Followers then;
      const bool is_parallel = spec.norms == Norms::parallel_one || spec.norms == Norms::parallel_two;
      if (spec.attention->output_bias) then.emplace_back("bias");
      append(then, dropout_);
      if (spec.norms == Norms::around || spec.norms == Norms::after) append(then, norm_);
      if (!is_parallel) then.emplace_back("residual");
      if (spec.norms != Norms::after && !is_parallel && spec.feed_forward_follows()) append(then, norm_);
      if (!spec.feed_forward_follows()) append(then, next_norms_);
      for (TableRow& row : attention_rows(spec_, rows_, *spec.attention, then)) add(std::move(row));
    }
    if (spec.more_parameters > 0) {
      add(elementwise_row("scales", elements(spec_.hidden), 2, 3, spec.more_parameters));
    }
    if (spec.feed_forward_follows()) feed_forward(spec);
  }

  Followers after_feed_forward(const BlockSpec& spec) const {
    Followers then;
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
    const Followers then = after_feed_forward(spec);
    if (!feed.experts) return two_layers("", rows_, feed.width, feed, then);
    const FeedForwardSpec::Experts& experts = *feed.experts;
    if (experts.with_dense) two_layers("", rows_, feed.width, feed, {});
    Followers router = experts.has_router_bias ? Followers{"bias", "softmax"} : Followers{"softmax"};
    dense({.name = "router",
           .rows = rows_,
           .inputs = spec_.hidden,
           .outputs = experts.count + experts.idle,
           .then = router});
    if (experts.shared_width > 0) two_layers("shared_", rows_, experts.shared_width, feed, {});
    if (experts.has_shared_gate) {
      dense({.name = "shared_expert_gate", .rows = rows_, .inputs = spec_.hidden, .outputs = 1});
    }
    expert_layers(feed, then);
  }

  void two_layers(const std::string& prefix, TableSize rows, std::int64_t width, const FeedForwardSpec& feed,
                  const Followers& then) {
    const Followers bias = feed.up_bias ? Followers{"bias"} : Followers{};
    Followers activated = bias;
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

  void expert_layers(const FeedForwardSpec& feed, const Followers& then) {
    const FeedForwardSpec::Experts& experts = *feed.experts;
    const TableSize rows = rows_.times(experts.used);
    const std::int64_t hidden = spec_.hidden;
    const Followers bias = experts.has_bias ? Followers{"bias"} : Followers{};
    DenseRow up{.name = "expert_up",
                .rows = rows,
                .inputs = hidden,
                .outputs = experts.width,
                .experts = experts.count,
                .used_experts = experts.used,
                .then = bias,
                .split = "columns"};
    const DenseRow down{.name = "expert_down",
                        .rows = rows,
                        .inputs = experts.width,
                        .outputs = hidden,
                        .experts = experts.count,
                        .used_experts = experts.used,
                        .then = bias,
                        .split = "rows"};
    const RoutingRow routing{.rows = rows_, .columns = hidden, .used_experts = experts.used};
    add(routing_row("dispatch", routing, {}));
    if (feed.gated) {
      DenseRow gate = up;
      gate.name = "expert_gate";
      dense(gate);
    }
    up.then.emplace_back(feed.gated ? "gate" : feed.activation == Activation::relu ? "relu" : "gelu");
    dense(up);
    dense(down);
    // What is beside the experts is added to their sum.
    Followers after = experts.with_dense || experts.shared_width > 0 ? Followers{"residual"} : Followers{};
    append(after, then);
    add(routing_row("combine", routing, after));
  }

  // Both inputs are normalised, joined and projected.
  void predictor(std::int64_t number) {
    group_ = {.name = "block", .first = number, .copies = 1};
    const std::int64_t joined = 2 * spec_.hidden;
    if (!norm_.empty()) add(elementwise_row("predictor_norms", elements(joined), 3, 3, joined));
    dense({.name = "predictor",
           .rows = rows_,
           .inputs = joined,
           .outputs = spec_.hidden,
           .then = norms_before(spec_.blocks.size() - 1)});
    next_norms_ = norms_before(spec_.blocks.size());
    block(spec_.blocks.back().block);
    flush();
  }

  void head() {
    for (std::int64_t i = 0; i < spec_.predictors; ++i) {
      dense({.name = fmt::format("predictor_head_{}", i),
             .rows = rows_,
             .inputs = spec_.hidden,
             .outputs = spec_.vocabulary,
             .shared_weights = true,
             .then = {"cross_entropy"},
             .split = "columns"});
    }
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
      Followers then{"bias", "gelu"};
      append(then, norm_);
      dense({.name = "head_dense", .rows = rows_, .inputs = spec_.hidden, .outputs = width, .then = then});
    } else if (width != spec_.hidden) {
      dense({.name = "head_projection",
             .rows = rows_,
             .inputs = spec_.hidden,
             .outputs = width,
             .then = spec_.projection_has_bias ? Followers{"bias"} : Followers{}});
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
  Followers norm_, dropout_;
  Followers next_norms_;  // what the next block begins with
  TableGroup group_;
};

}  // namespace

ModelTable table_of(const TransformerSpec& spec) {
  return TransformerTable(spec).make();
}

}  // namespace tandem
