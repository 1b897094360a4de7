// The rows of a block's attention, or of the mixer that it has instead.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/models/transformer.h"

namespace tandem {

// `rows` are those of one example. `then` is what is done to the output.
std::vector<TableRow> attention_rows(const TransformerSpec& spec, TableSize rows, const AttentionSpec& attention,
                                     const std::vector<std::string>& then);

}  // namespace tandem
