// Tells whether a measured number is normal: what the model expects of the run on its topology, how far the model has
// been from measurements, and the term that explains most of the gap.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/timeline.h"

namespace tandem {

struct Report;

// The error that predictions of a kind have had.
struct ErrorBand {
  double relative = 0;     // 19 of 20 predictions were within it
  std::string_view basis;  // what was compared
};

// Returns the band of predictions for a topology whose weakest figure has this provenance, on one worker or on several.
ErrorBand error_band_of(std::string_view provenance, int workers);

// A part of the gap between a measured and an expected step.
struct GapTerm {
  std::string name;      // "compute efficiency"
  Nanoseconds time = 0;  // measured - expected
};

struct Expectation {
  std::string topology;
  Nanoseconds step_time = 0;
  double band = 0;
  std::string basis;               // of the band
  std::optional<GapTerm> largest;  // the largest term in the direction of the gap; empty: there is none

  double gap_of(Nanoseconds measured) const;  // measured / expected - 1
  bool is_normal(Nanoseconds measured) const;
};

// Returns what is expected of a measured run, by `predicted`, a simulation of the same scenario.
Expectation expectation_of(const Report& measured, const Report& predicted);

}  // namespace tandem
