// Runs `tandem` with bounds on its time and memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::bad_input {

struct ChildResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out, err;
  double cpu_s = 0;
  std::size_t peak_bytes = 0;  // of memory in use
};

// In `folder`, with `arguments` behind the program's name. What it prints is read to the end.
ChildResult run_tandem(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace tandem::bad_input
