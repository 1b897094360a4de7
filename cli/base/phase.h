// What --verbose shows on stderr: the phases of a command, each with the time it took.
#pragma once

#include <chrono>
#include <string>

namespace tandem {

// Shows itself when it ends, as "tandem: read scenario.yaml: 3.2 ms". Those of other ranks than 0 show nothing.
//
// Threads: one, that of the command.
class Phase {
 public:
  static void show_all();  // from now on

  explicit Phase(std::string what) : what_(std::move(what)) {}
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const std::string what_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tandem
