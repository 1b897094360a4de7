// Megatron-LM's short texts for layers: where each is (--pipeline-model-parallel-layout), and what it has
// (--moe-layer-freq, --window-attn-skip-freq).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Returns the layers of each stage of a layout such as "Et*3|(tt|)*29,m|L": the embedding and three layers, 29 stages
// of two layers, one that predicts a further token, and the loss. Such layers count if `with_predictors`. Returns
// nothing for other texts.
std::optional<std::vector<std::int64_t>> stages_of_layout(std::string_view layout, bool with_predictors = false);

// Expands "([0]*3+[1]*12)" or "[0,1,1]" to `length` values. Returns false if it is no such expression or has another
// length.
bool expand_list(const std::string& text, std::size_t length, std::vector<bool>& values);

}  // namespace tandem
