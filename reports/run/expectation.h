// Tells whether a measured number is normal: what the model expects of the run on its topology, how far the model has
// been from measurements, and the term that explains most of the gap.
#pragma once

#include <optional>
#include <string>

#include "engine/timeline.h"
#include "reports/errors/error_bands.h"

namespace tandem {

struct Report;

// A part of the gap between a measured and an expected step.
struct GapTerm {
  std::string name;      // "compute efficiency"
  Nanoseconds time = 0;  // measured - expected
};

struct Expectation {
  std::string topology;
  Nanoseconds step_time = 0;
  ErrorBand band{};                // of such predictions
  std::optional<GapTerm> largest;  // the largest term in the direction of the gap; empty: there is none

  double gap_of(Nanoseconds measured) const;  // measured / expected - 1
  // Returns whether the gap is within the widest interval of the band; nothing if none is known.
  std::optional<bool> is_normal(Nanoseconds measured) const;
};

// Returns what is expected of a measured run, by `predicted`, a simulation of the same scenario.
Expectation expectation_of(const Report& measured, const Report& predicted);

}  // namespace tandem
