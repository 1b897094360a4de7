// Megatron-LM's --pipeline-model-parallel-layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem {

// Returns the layers of each stage of a layout such as "Et*3|(tt|)*29,m|L": the embedding and three layers, 29 stages
// of two layers, one that predicts a further token, and the loss. Such layers count if `with_predictors`. Returns
// nothing for other texts.
std::optional<std::vector<std::int64_t>> stages_of_layout(std::string_view layout, bool with_predictors = false);

}  // namespace tandem
