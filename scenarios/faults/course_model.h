// How a whole job goes while its cluster changes, without simulating each step: steps between two events are equal, so
// that their time is asked for once for each state of the cluster, and the job jumps from event to event.
//
// A step that a change interrupts goes on at the new pace from where it was. A failure in a phase of a recovery begins
// the recovery anew. What a scenario does not state counts as 0 here; the course names it.
//
// Threads: any.
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "reports/course/job_course.h"
#include "scenarios/faults/fault_settings.h"

namespace tandem {

// What a step's time depends on.
struct ClusterState {
  std::set<std::pair<int, int>> slow{};  // of FaultSettings::slow, and the worker of each
  int lost_workers = 0;                  // that the job goes on without
  auto operator<=>(const ClusterState&) const = default;
};

struct CourseJob {
  double steps = 1;
  int workers = 1;  // that train
  RecoveryPolicy policy = RecoveryPolicy::restart_all;
  bool repeats_functions = false;  // another worker does again what a lost one had begun
  double extra_s = 0;              // more time for each restart
  // The seconds of a step in this state; infinite or NaN: it cannot go on so. Each course calls it
  // once for each state.
  std::function<double(const ClusterState&)> step_s{};
  double evaluation_every = 0;  // steps; 0: never
  // The seconds for which training waits for an evaluation in this state.
  std::function<double(const ClusterState&)> evaluation_s{};
};

// Returns the course of the job. Throws RunError for a job of which nothing is done in kMostFailures failures.
inline constexpr std::int64_t kMostFailures = 300'000;
JobCourse course_of(const CourseJob& job, const FaultSettings& faults);

// The same, with what else a report says: courses whose failures were drawn again; what is not stated, and how long it
// may take in all (JobCourse::break_even).
JobCourse whole_course(const CourseJob& job, const FaultSettings& faults);

}  // namespace tandem
