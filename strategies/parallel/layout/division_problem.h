// Why a strategy cannot divide a model.
#pragma once

#include <string>

namespace tandem {

struct DivisionProblem {
  std::string path;  // of the value to blame, as scenarios spell it: "strategy.tensor"
  std::string message;
};

}  // namespace tandem
