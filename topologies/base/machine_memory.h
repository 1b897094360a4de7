// What this machine has left for large input, so that a command can refuse it before it begins.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "topologies/base/error.h"

namespace tandem {

// This machine is too small for what is asked. Exit code 5.
class SizeError : public RunError {
  using RunError::RunError;
};

// Returns how much memory the system and the limits of this process's group still have to give; nothing where it is
// unknown.
std::optional<double> available_memory_bytes();
// The same from a copy of /proc/meminfo and the folder of a control group.
std::optional<double> available_memory_bytes(const std::string& meminfo, const std::string& group);
// Returns what `ulimit -v` leaves of this process's address space, or nothing if there is no limit.
std::optional<double> available_addresses();

// Throws SizeError if less is left than what is estimated for an input, "a trace of 3 GB". `less` says what needs less.
void check_memory(const std::string& input, double bytes, const std::string& less);

// The same for a text that is about to be read as YAML, JSON or XML.
void check_memory_of_text(const std::string& file, std::size_t bytes);

// Returns the number in a file of the kernel, or nothing for another text or no file.
std::optional<double> number_in(const char* file);

}  // namespace tandem
