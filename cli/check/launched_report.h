// The report of a scenario that another process runs.
#pragma once

#include <string>
#include <vector>

#include "reports/run/report.h"

namespace tandem {

struct Launched {
  std::string program;   // the path of a tandem
  std::string scenario;  // a file
  int number = 1;        // of the launch, for messages
  double timeout_s = 600;
  std::vector<std::string> settings{};  // --set, which the program takes only if there are some

  std::string name() const;  // "launch 3 (./tandem)"
};

std::string this_program();  // its path

// Launches `tandem run`. Throws RunError for one that fails, and InputError for one that prints no report or repeats
// its times exactly.
Report launched_report(const Launched& launched);

}  // namespace tandem
