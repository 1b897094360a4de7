// Is this number normal? What the model expects of a measured run on its topology, how far the model has been from
// measurements, and the term that explains most of the gap.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/timeline.h"

namespace tandem {

struct Report;

// How far predictions of a kind have been from measurements.
struct ErrorBand {
  double relative = 0;     // 19 of 20 predictions were within it
  std::string_view basis;  // what was compared
};

// The band of predictions for a topology whose weakest figure has this provenance, on one worker or on several.
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
  std::optional<GapTerm> largest;  // in the direction of the gap; empty: there is none

  double gap_of(Nanoseconds measured) const;  // measured / expected - 1
  bool is_normal(Nanoseconds measured) const;
};

// What `predicted`, a simulation of the same scenario, says of the measured run.
Expectation expectation_of(const Report& measured, const Report& predicted);

}  // namespace tandem
