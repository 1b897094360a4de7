// Reads an input file piece by piece, unpacked where it is a gzip file, because traces are too large to hold in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/input_file.h"

struct z_stream_s;

namespace tandem {

class ByteSource {
 public:
  enum class Reads : bool { all, beginning };  // how much of the file is wanted
  // Reads an open file, which must outlive this, from its beginning on. Throws InputError for one that cannot be read.
  explicit ByteSource(const InputFile& file, Reads reads = Reads::all);
  // Opens a file first. Throws as InputFile.
  explicit ByteSource(const std::filesystem::path& file, Reads reads = Reads::all);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Returns the next bytes, which are valid until the next call, and none at the end. Throws InputError for a file that
  // grows meanwhile, and for a gzip file that is damaged, ends too early, or unpacks to more than a trace can be;
  // SizeError for a trace that is read as a whole and that this machine has no memory for.
  std::string_view next();

  const std::string& name() const { return name_; }
  bool is_packed() const { return inflate_ != nullptr; }
  bool has_failed() const { return has_failed_; }  // by an exception of next()

 private:
  std::size_t read();
  void begin();
  void estimate_rest();
  void begin_unpacking();
  std::string_view unpack();
  // Refuse the file, or what it has at a byte.
  [[noreturn]] void fail(const std::string& message, std::int64_t byte = -1);
  [[noreturn]] void fail_here(const std::string& message);

  std::optional<InputFile> own_;  // where this has opened it
  const InputFile& file_;
  const std::string name_;
  const Reads reads_;
  bool has_failed_ = false;
  std::vector<char> packed_, unpacked_;
  std::size_t held_ = 0;  // bytes of packed_ that are still to be unpacked
  std::unique_ptr<z_stream_s> inflate_;
  bool is_at_end_ = false;  // of a member of a gzip file
  std::int64_t read_bytes_ = 0, unpacked_bytes_ = 0;
};

// Returns the first bytes of a file, unpacked: `most`, a few more, or all. Throws InputError.
std::string beginning_of(const InputFile& file, std::int64_t most);

// Returns all bytes of a file of at most `most` bytes, unpacked. Throws InputError.
std::string read_unpacked(const InputFile& file, std::int64_t most);

}  // namespace tandem
