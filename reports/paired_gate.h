// Which figures of launches decide a check of pairs, and in which order.
//
//   counts      exact counts of the work: one pair is enough, and any difference decides
//   cpu-time    the processor time of the run's process in the measured steps, by pairs
//   wall-clock  the step time, by pairs, as paired_check.h describes
// Other programs on the machine change neither the counts nor, but for caches and shared cores, the processor time. So
// where processor time decides, wall-clock time decides besides only while the machine is quiet: while at most a tenth
// of the launches were disturbed. A regression of either is one; both must be ok for "ok".
//
// Processor time contains what threads use while they wait actively, for a moment on `cpu` and always in libraries of
// MPI, which poll. Of several processes it is that of the first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/paired_check.h"

namespace tandem {

struct PairedGates {
  bool counts = true;
  bool cpu = true;
  bool wall = true;
};

// Returns the gates of "counts,cpu-time,wall-clock" or a part of it. Empty: the text names none, or something else.
std::optional<PairedGates> gates_from(const std::string& text);

// Returns the differences of neighbouring launches in the logarithm of their processor time for each measured step.
// Empty: a launch does not say it.
std::vector<double> cpu_log_ratios_of(const std::vector<Launch>& launches);

// Returns the counts that differ in the first pair. Empty: none, or one of the reports has none, or the run is
// asynchronous, so that its counts depend on the order in which workers came.
std::vector<CountChange> changed_counts(const std::vector<Launch>& launches);

// Returns the verdict over the launches so far, with what decided it; or nothing if more pairs are needed. If the
// launches lack the figures of every gate, the verdict is inconclusive. Where only processor time is lacking,
// wall-clock time decides alone.
std::optional<PairedResult> decide(const std::vector<Launch>& launches, const PairedGates& gates, double margin,
                                   int comparisons);

}  // namespace tandem
