// Reads command-line flags as people keep them: in a shell script or on a shell line, as a map of a YAML file, or in
// the block of arguments that a program prints when it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/input_file.h"
#include "topologies/base/error.h"

namespace tandem {

struct Flag {
  std::string name;   // without dashes in front, with _ for -: "num_layers"
  std::string value;  // empty: none; lists have blanks
  int line = 0, column = 0;
};

// The flags of a program. If one is given twice, the last one counts.
class Flags {
 public:
  explicit Flags(std::string file) : file_(std::move(file)) {}

  void add(Flag flag);
  void remove(std::string_view name);
  const std::string& file() const { return file_; }
  const std::vector<Flag>& all() const { return flags_; }
  std::map<std::string, std::string> environment{};
  bool is_printed = false;           // by the program, which prints every argument, also those that nobody gave
  std::vector<std::string> notes{};  // what of the file is not read or could not be decided

  const Flag* find(std::string_view name) const;
  bool is_on(std::string_view name) const;                          // given, and not "false"
  std::optional<std::int64_t> number(std::string_view name) const;  // throws InputError for anything else
  std::int64_t number(std::string_view name, std::int64_t otherwise) const { return number(name).value_or(otherwise); }
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  // Returns the flag, or where it is not there the first of all, as the place of a problem without a message.
  Diagnostic place_of(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, const std::string& message) const;  // there

 private:
  std::string file_;
  std::vector<Flag> flags_;
};

// Returns whether a text has one of these forms.
bool has_flags(std::string_view text);

// Reads either form, and replaces variables that the text itself sets. Throws InputError.
Flags read_flags(const InputFile& file);

}  // namespace tandem
