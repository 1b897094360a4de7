// Bytes as a file with a name, without a disk: for readers that take files.
#pragma once

#include <filesystem>
#include <string_view>

namespace tandem::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_ = -1;
};

}  // namespace tandem::fuzz
