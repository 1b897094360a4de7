// Valid jobs of every kind, drawn at random: what an engine that models a machine must run without a crash.
//
// Each choice begins with the simplest one, as Draws wants it.
#pragma once

#include <string>

#include "scenarios/collectives/collective_job.h"
#include "tests/fuzz/draws.h"

namespace tandem::fuzz {

// Returns the text of a scenario: every strategy x batch x devices x machine, models that are trained and models whose
// layers are executed for their cost, and the settings of each. Some are refused: a model cannot be divided by every
// mesh.
std::string drawn_scenario(Draws& draw);

// The same with a sweep of two fields.
std::string drawn_sweep(Draws& draw);

struct DrawnCollective {
  CollectiveJob job{};
  CollectiveSweep sweep{};
  std::string text() const;  // the command that runs it
  std::string node{};        // of the catalog
};
DrawnCollective drawn_collective(Draws& draw);

}  // namespace tandem::fuzz
