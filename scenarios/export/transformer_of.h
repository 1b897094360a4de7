// The sizes of a transformer, from its table of layers: the inverse of table_of().
#pragma once

#include <optional>

#include "scenarios/import/models/transformer.h"
#include "strategies/model/model.h"

namespace tandem {

// Returns a decoder's sizes, with an entry of `blocks` for each block but those that predict further tokens. Layers are
// told apart by their place, their form and what follows them; the names matter only for latent attention, shared
// experts and predictors. Returns nothing for a model without blocks of attention and a feed-forward. A model that has
// more than this finds is not equal to the table of the result, which is the caller's to compare.
std::optional<TransformerSpec> transformer_of(const Model& model);

}  // namespace tandem
