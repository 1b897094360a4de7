// The steady state of simulated steps that pass through the model many times: micro-batches of a pipeline, or passes
// over which gradients are accumulated. Once the pipeline is full, passes repeat one another. So a job with fewer of
// them is simulated, and its report is continued, if its records prove that a period repeats.
#pragma once

#include <optional>
#include <string>

#include "reports/run/report.h"
#include "scenarios/job/job.h"

namespace tandem {

// The same job with fewer passes in a step, over as many examples each.
struct FewerPasses {
  Scenario scenario;
  int passes = 1;
  int of = 1;      // those of the whole job
  int period = 1;  // after so many of them the order of work repeats
  int most = 1;    // times may repeat after so many periods

  int periods_left_out() const { return (of - passes) / period; }
};

// Returns the job with the fewest passes, but at least `least`, that may show a steady state; those that it leaves out
// are a multiple of `multiple` periods. Returns nothing if passes are not equal, or if it would not save at least half
// of them. Needs a simulation of a table of layers.
std::optional<FewerPasses> fewer_passes(const Job& job, int least = 1, int multiple = 1);

// What the records of a run of `fewer` show.
struct SeenPeriod {
  int periods = 1;                 // times repeat after so many periods of the order of work
  std::optional<Summary> summary;  // of all passes; nothing if those left out are not a multiple of that
};

// Continues the summary of a run of `fewer`, whose records are `timeline`, to all passes; both have these figures.
// Returns nothing if the records show no period. If they show one, `fewer` takes it over.
std::optional<SeenPeriod> seen_period(const Summary& simulated, const Timeline& timeline, FewerPasses& fewer,
                                      Figures figures);

// "micro-batches: 11 of 64 of a step are simulated; ..."
std::string note_of(const FewerPasses& fewer, const Job& job);

}  // namespace tandem
