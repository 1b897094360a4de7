// A file that is opened once, however often it is read: to see what it is, and then by the readers of that kind.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tandem {

enum class ImportKind : std::uint8_t { scenario, hugging_face, megatron, torchtitan, trace };

class InputFile {
 public:
  // Opens a regular file; readers thus take a path, too. Throws InputError for a folder, a pipe, a device, and a file
  // that cannot be opened.
  InputFile(const std::filesystem::path& path);
  // Returns a text as the file of that path, which need not be there.
  static InputFile of_text(const std::filesystem::path& path, std::string text);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.string(); }  // in messages
  // When it was opened. A mark of UTF-8 before a text (EF BB BF) is no part of it, here and below.
  std::int64_t size_bytes() const { return size_bytes_; }
  // Copies bytes from `offset` on, and returns how many there were; 0 at the end. Throws InputError for a file that
  // cannot be read, or that has grown.
  std::size_t read(std::int64_t offset, std::span<char> bytes) const;
  // Returns the whole text of a file that people write. Throws InputError, also for one above kMostInputBytes.
  std::string text() const;

  // Returns what the file holds, by its content; `scenario` is everything that no other kind claims. Looks once. Throws
  // InputError for a file that cannot be read.
  ImportKind kind() const;

  // Returns how many files this process has opened by this class.
  static std::int64_t opened();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  InputFile(const std::filesystem::path& path, std::string text);
  [[noreturn]] void fail(const std::string& message) const;

  std::filesystem::path path_;
  std::string held_{};                          // in place of the file's bytes
  std::unique_ptr<std::FILE, CloseFile> file_;  // null: `held_`
  std::int64_t size_bytes_ = 0, skipped_bytes_ = 0;
  mutable std::optional<ImportKind> kind_;
};

}  // namespace tandem
