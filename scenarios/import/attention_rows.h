// The rows of a block's attention, or of what stands in its place.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/transformer.h"

namespace tandem {

// `rows`: of an example. `then`: what is done to the output.
std::vector<TableRow> attention_rows(const TransformerSpec& spec, TableSize rows, const AttentionSpec& attention,
                                     const std::vector<std::string>& then);

}  // namespace tandem
