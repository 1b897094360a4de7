// The sizes that a family's configuration has where the file does not say. Files of models of several parts leave out
// what equals them. Facts of huggingface/transformers, src/transformers/models/*/configuration_*.py.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace tandem {

using SizeDefaults = std::map<std::string_view, std::int64_t>;

// Empty for a family whose files say everything.
const SizeDefaults& size_defaults_of(std::string_view model_type);

}  // namespace tandem
