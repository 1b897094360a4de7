// The kinds of failure, and how each ends.
//
// A wrong file, a missing device or a dead peer throws a tandem::Error; the command line turns its kind into an exit
// code (docs/exit-codes.md). A caller's mistake throws UsageError (TANDEM_REQUIRE), or stops the program where nothing
// can be thrown (TANDEM_REQUIRE_IN_DESTRUCTOR). A broken invariant of Tandem's own stops the program (TANDEM_CHECK,
// TANDEM_UNREACHABLE).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// The base of everything Tandem throws. `what()` is one complete message for people.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where something begins in a file: a line and a column, from 1; in a file without lines a byte, from 0.
struct FilePlace {
  int line = 0;
  int column = 0;
  std::int64_t byte = -1;
};

// The place of what is wrong with the whole content of a text.
inline constexpr FilePlace kBeginning{.line = 1, .column = 1};

// Returns the place of the byte at `offset`, or of the end of the text where that is further on.
FilePlace place_in(std::string_view text, std::size_t offset);

// One thing wrong in an input file. Line and column count from 1; without a line and a byte it is the file as a whole,
// which cannot be opened, is empty or too large.
struct Diagnostic {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;  // where in the document, e.g. "workload.batch"; may be empty
  std::string message;
  std::int64_t byte = -1;  // from 0, in a file without lines

  // "file:line:column: path: message" or "file:byte N: path: message" in one line, leaving out what is not known
  // (topologies/base/shown.h).
  std::string text() const;
};

Diagnostic problem_at(std::string file, const FilePlace& place, std::string message, std::string path = "");

// A program that uses Tandem as a library calls it wrongly: shapes that do not fit, a stream of another device, a rank
// outside its group. The call that throws has changed nothing.
class UsageError : public Error {
 public:
  using Error::Error;
};

// An input file cannot be used. Carries every problem found, in the order of the file. Exit code 3.
class InputError : public Error {
 public:
  explicit InputError(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

// An engine, device or feature is not there (not built, no such hardware). Exit code 4.
class UnavailableError : public Error {
 public:
  using Error::Error;
};

// A run began and could not finish (device, collective library, simulator). Exit code 5.
class RunError : public Error {
 public:
  using Error::Error;
};

// What the input asks for cannot be, wherever the run finds out: a rate that a modelled device lacks, more memory than
// it has, nodes that no link joins, a time that is not finite. Exit code 3.
class ImpossibleError : public RunError {
 public:
  // `part` of a scenario is the one to change.
  explicit ImpossibleError(const std::string& message, std::string part = "topology")
      : RunError(message), part_(std::move(part)) {}
  const std::string& part() const { return part_; }

 private:
  std::string part_;
};

// Every task of the run waits for another one. The message names who waits for what. Exit code 5.
class DeadlockError : public RunError {
 public:
  using RunError::RunError;
};

// A collective with a timeout was not complete in time. The message names it, its devices, which of them are missing,
// and the timeout. Exit code 5.
class DeadlineExceededError : public RunError {
 public:
  using RunError::RunError;
};

// A value found to be wrong while it was used: an index past the end of a tensor. TensorFlow's status of that name.
class InvalidArgumentError : public RunError {
 public:
  using RunError::RunError;
};

// Returns the name among `known` nearest to `word` by edit distance, or "" when none is near enough to suggest.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

// Shortens a text from a file for messages, to the characters in its first 40 bytes.
std::string shortened(const std::string& text);

// Called by the macros below.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
[[noreturn]] void require_failed(const std::string& message);
[[noreturn]] void require_in_destructor_failed(const char* message);
[[noreturn]] void unreachable(const char* file, int line, const std::string& message);

}  // namespace tandem

// Stops the program when an invariant of ours is broken: a bug in Tandem, never bad input.
#define TANDEM_CHECK(condition, message)                                               \
  do {                                                                                 \
    if (!(condition)) ::tandem::check_failed(#condition, __FILE__, __LINE__, message); \
  } while (false)

// Throws UsageError when the caller of a public function breaks its contract.
#define TANDEM_REQUIRE(condition, message)               \
  do {                                                   \
    if (!(condition)) ::tandem::require_failed(message); \
  } while (false)

// Stops the program when the caller breaks the contract of a destructor, which cannot throw.
#define TANDEM_REQUIRE_IN_DESTRUCTOR(condition, message)               \
  do {                                                                 \
    if (!(condition)) ::tandem::require_in_destructor_failed(message); \
  } while (false)

// Stops the program at a place that cannot be reached, such as after a switch over all enumerators.
#define TANDEM_UNREACHABLE(message) ::tandem::unreachable(__FILE__, __LINE__, message)
