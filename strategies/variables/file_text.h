// Reading the files of checkpoints.
#pragma once

#include <optional>
#include <string>

namespace tandem {

// Returns all bytes of a file; nothing where there is none. UnknownError, with the reason, where it cannot be read.
std::optional<std::string> file_text(const std::string& path);

}  // namespace tandem
