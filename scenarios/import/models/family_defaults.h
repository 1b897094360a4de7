// The default sizes of a family's configuration. Files of models that have several parts leave out sizes that equal
// them. Facts from huggingface/transformers, src/transformers/models/*/configuration_*.py.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace tandem {

using SizeDefaults = std::map<std::string_view, std::int64_t>;

// Returns the default sizes of a family; none for a family whose files state all sizes.
const SizeDefaults& size_defaults_of(std::string_view model_type);

}  // namespace tandem
