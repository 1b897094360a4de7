#include "strategies/variables/file_text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "strategies/base/errors.h"

namespace tandem {

std::optional<std::string> file_text(const std::string& path) {
  const auto unreadable = [&path](int reason) {
    return UnknownError(fmt::format("cannot read {}: {}", path, std::strerror(reason)));
  };
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable(errno);
  if (kind == std::filesystem::file_type::directory) throw unreadable(EISDIR);
  try {
    return std::string(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {  // of the buffer, which does not ask the stream
    throw unreadable(errno);
  }
}

}  // namespace tandem
