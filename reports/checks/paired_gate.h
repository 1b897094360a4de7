// Which figures of launches decide a check of pairs, and in which order.
//
//   counts      exact counts of the work: one pair is enough, and any difference decides
//   op-time     the time of a step's ops (op_time.h), by pairs
//   cpu-time    the processor time of the run's process in the measured steps, by pairs
//   wall-clock  the step time, by pairs, as paired_check.h describes
// Other programs on the machine do not change the counts, and hardly the first two times. So wall-clock time decides
// besides them only while the machine is quiet: while at most a tenth of the launches were disturbed.
//
// A regression of any of these times is one. Otherwise, when all of them are decided or 32 pairs are over, the first
// one says the verdict: "ok" and "improved" do not need the later ones, which may be too noisy on this machine.
//
// Processor time contains what threads use while they wait actively, for a moment on `cpu` and always in libraries of
// MPI, which poll. Of several processes it is that of the first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/checks/paired_check.h"

namespace tandem {

struct PairedGates {
  bool counts = true;
  bool ops = true;
  bool cpu = true;
  bool wall = true;
};

// Returns the gates of "counts,op-time,cpu-time,wall-clock" or a part of it. Empty: the text names none, or something
// else.
std::optional<PairedGates> gates_from(const std::string& text);

// Returns the counts that differ in the first pair. Empty: none, or one of the reports has none, or the run is
// asynchronous, so that its counts depend on the order in which workers came.
std::vector<CountChange> changed_counts(const std::vector<Launch>& launches);

// Returns the verdict over the launches so far, with what decided it; or nothing if more pairs are needed. If the
// launches lack the figures of every gate, the verdict is inconclusive. If they have neither op nor processor time,
// wall-clock time decides alone.
std::optional<PairedResult> decide(const std::vector<Launch>& launches, const PairedGates& gates, double margin,
                                   int comparisons);

}  // namespace tandem
