// What must hold for every run of a model of a machine, whatever the job is.
#pragma once

#include <string>

#include "tests/fuzz/drawn_jobs.h"

namespace tandem::fuzz {

// Each returns what does not hold, or nothing. All throw tandem::Error for a job that is refused, as it may be.
//
// A run ends without a deadlock; its times and figures are finite and not negative; it ends with the same times when
// it is repeated, and when no worker represents others; it is no faster, by more than 2 %, on GPUs of half the
// speed; and it takes no less than its bound (scenarios/plan/step_bound.h).
std::string problem_of_scenario(const std::string& text);
// The step of a point takes no less than its bound. A point without a bound is refused.
std::string problem_of_point(const std::string& text);
// A collective's time is finite, more than 0 for several devices, and the same when it is repeated.
std::string problem_of_collective(const DrawnCollective& drawn);
// Every point ends with figures that are finite, or says why it has none, and the table is the same when the points run
// in two processes at a time. Needs a process that has not run a simulation itself.
std::string problem_of_sweep(const std::string& text);

// The last job that was given to one of these, for the message of a crash.
const std::string& job_under_test();

}  // namespace tandem::fuzz
