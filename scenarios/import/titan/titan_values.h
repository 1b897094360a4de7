// The values of a job of torchtitan by their keys ("training.seq_len"), in TOML or in Python, with their places.
//
// Threads: any, for reading.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/input_file.h"
#include "topologies/base/error.h"

namespace tandem {

class TitanValues {
 public:
  // `name`: which configuration of a Python file; empty: the only one. Throws InputError for a file that cannot be read
  // or has a known section that is none.
  TitanValues(const InputFile& file, const std::string& name);

  // Each returns `usual` for a key that is not there, and throws InputError at a value of another type or outside of
  // its bounds.
  std::int64_t whole(std::string_view key, std::int64_t usual, std::int64_t least, std::int64_t most) const;
  double number(std::string_view key, double usual) const;
  std::string text(std::string_view key, std::string_view usual) const;
  bool is_on(std::string_view key, bool usual = false) const;
  std::vector<std::string> texts(std::string_view key) const;
  // Returns a value of any type as text, lists as "a, b"; nothing for a key that is not there.
  std::optional<std::string> shown(std::string_view key) const;

  // Throws InputError at a key; where it is not there, at its section.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

  const std::map<std::string, FilePlace>& places() const { return places_; }  // of all keys that are there
  bool is_read(const std::string& key) const { return read_.contains(key); }  // by one of the functions above
  // Returns what of a Python file could not be read, and was not needed.
  std::vector<std::string> unread() const;

 private:
  struct Document;

  std::shared_ptr<const Document> document_;
  std::map<std::string, FilePlace> places_{};
  mutable std::set<std::string> read_{};
};

}  // namespace tandem
