// Shared experts: those that all tokens use, whatever a router chooses. In a table they are the dense layers between a
// router and `dispatch`, so that they need nothing of the exchanges of tokens with the other experts. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "strategies/model/model.h"
#include "strategies/parallel/layout/division_problem.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {

// The layers [first, end) of a shared expert, in the order of the model, and the experts that it is beside. Those
// before `activated` are its products up to the last activation, which can be computed while tokens go to the experts;
// the others while they come back.
struct SharedExpert {
  std::size_t first = 0, activated = 0, end = 0;
  std::size_t first_of_experts = 0, last_of_experts = 0;

  bool has(std::size_t layer) const { return first <= layer && layer < end; }
  // Its layers, and those before and after which the tokens are exchanged.
  std::vector<std::size_t> beside_exchanges() const;
};

// Returns those of a model, or of some of its consecutive layers.
std::vector<SharedExpert> shared_experts(std::span<const Layer> layers);

// Returns why they cannot be computed beside exchanges, where the options ask for that.
std::optional<DivisionProblem> shared_expert_problem(const Model& model, const ParallelOptions& options);

}  // namespace tandem
