// What a report says of its run, beside what was measured.
#pragma once

#include <optional>
#include <vector>

#include "engine/engine.h"
#include "reports/run/report.h"
#include "scenarios/job/job.h"
#include "scenarios/run/training.h"

namespace tandem {

// Merges the results of all workers.
Report merged(const std::vector<TrainingResult>& results, const Job& job);

// Adds to a report the names of what ran, the summary of its records, how far off a prediction may be, what was counted
// in a measured run, and the notes on what was run. `figures`: of the summary.
void add_facts(Report& report, const Job& job, const Capabilities& capabilities, const Timeline& timeline,
               Figures figures);

// Returns what the machines of the job cost; nothing if the topology does not say it.
std::optional<JobPrice> price_of(const Job& job);

// Returns what the machines of the job take; nothing if the topology does not say it.
std::optional<JobPower> power_of(const Job& job);

// Adds the scenario's notes, and those on what it states without effect.
void add_notes(Report& report, const Job& job, const Timeline& timeline);

}  // namespace tandem
