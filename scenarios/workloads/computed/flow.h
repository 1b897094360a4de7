// How data flow through the layers of a table, which lists them in forward order only.
//
// A layer reads the output of the one before it. Neighbours that are split by columns without an activation between
// them share an input: query, key and value; gate and up. The product of scores reads queries and keys, the one that
// reads scores reads values. A residual adds the input of its sublayer, which is the output of the last layer with a
// residual, or that of the embedding: norms come after sums ("Attention Is All You Need", arXiv:1706.03762).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/model/model.h"

namespace tandem {

inline constexpr int kNoLayer = -1;

inline bool is_row_norm(Pointwise operation) {
  return operation == Pointwise::layer_norm || operation == Pointwise::rms_norm;
}

// Returns the columns of a layer's output, seen as a matrix with a row for each token; and the number of tokens.
std::int64_t output_columns(const Layer& layer);
std::int64_t token_rows(const Layer& layer);

// The heads of attention. Keys and values are shared by `sharing` queries.
struct Heads {
  std::int64_t count = 1, sharing = 1, width = 1;
  std::int64_t groups() const { return count / sharing; }  // heads of keys and values
  bool operator==(const Heads&) const = default;
};

struct LayerFlow {
  // table: an embedding. projection: a dense layer whose output becomes queries, keys or values. scores, mixed: the two
  // products of attention. dispatch, experts, combine: rows go to the experts that the router before them chooses, and
  // the sums of what comes back are weighted by the router's probabilities.
  enum class Kind : std::uint8_t { table, dense, projection, scores, mixed, dispatch, experts, combine };
  Kind kind = Kind::dense;
  int input = kNoLayer;          // the layer whose output it reads; kNoLayer: the model's input
  int shortcut = kNoLayer;       // the layer whose output its residual adds
  int gate = kNoLayer;           // the layer whose output goes through SiLU and is multiplied with this one's
  int router = kNoLayer;         // of a dispatch and of a combination
  std::optional<Heads> heads{};  // of a projection and of the products of attention
  // Whether a projection's output has queries, keys, values, in this order for each group of heads.
  bool has_queries = false, has_keys = false, has_values = false;
  bool has_positions = false;  // of a table: its rows after those of words are added by position
  std::int64_t words = 0;      // of a table: how many of its rows are words
};

// Returns the flow of each layer. flow_problem() must have found nothing.
std::vector<LayerFlow> flow_of(const Model& model);

// Returns why the layers of a table cannot be computed; nothing where they can.
std::optional<std::string> flow_problem(const Model& model);

}  // namespace tandem
