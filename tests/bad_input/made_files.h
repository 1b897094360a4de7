// The bad files that are too large, or too odd, to be kept in a repository: each is made when a test asks for it.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

namespace tandem::bad_input {

// Makes the file or folder of this name in `folder`; false when no file is called so.
bool make_file(const std::string& name, const std::filesystem::path& folder);

// Appends to a file from the beginning of its life to its end.
class GrowingFile {
 public:
  explicit GrowingFile(const std::filesystem::path& file);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::thread writer_;
};

}  // namespace tandem::bad_input
