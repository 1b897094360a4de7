// Reads the text of `nvidia-smi topo -m`. It tells how devices are joined, but no rates; these come from the machine or
// GPU that ImportOptions names.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"

namespace tandem {

bool is_nvidia_smi(std::string_view text);
ImportedTopology import_nvidia_smi(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
