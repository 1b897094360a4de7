// How a whole job goes in which workers are lost: what its time is spent on, and what of it is useful.
//
// Times are seconds of the job, from the beginning of its first step. They are those of a model of the job whose steps
// take what steps in the same state of the cluster take; see scenarios/faults/.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

// What a job does at one time. Work that is lost, because it comes after the last checkpoint before a failure, is
// `lost`, whatever it was.
enum class CourseState : std::uint8_t {
  training,       // what the steps that remain would have taken on the undisturbed cluster
  slower,         // what they took beyond that: for a slow device or link, or with fewer workers
  lost,           // steps that are done again
  checkpointing,  // not while the job goes on beside it
  detecting,      // until the failure is known
  waiting,        // for a worker to come back
  restarting,
  loading,
  evaluating,  // while training waits
};
inline constexpr std::size_t kCourseStates = 9;
const char* name_of(CourseState state);

// How long what is not known of each failure may take in all, so that so much of the time is still useful.
struct BreakEven {
  double goodput = 0;  // 0..1
  double seconds = 0;  // per failure
  bool operator==(const BreakEven&) const = default;
};

struct JobCourse {
  std::string policy{};              // "restart_all"
  std::string ended{};               // why it ended before its last step; empty: it did all
  double steps = 0, steps_done = 0;  // that it was to do, and that remain
  double undisturbed_step_s = 0;
  double seconds = 0;                          // of the whole job
  std::array<double, kCourseStates> time_s{};  // by state; they add up to `seconds`
  std::int64_t failures = 0;                   // that the job met
  double steps_lost = 0;                       // done, and done again
  std::int64_t checkpoints = 0;
  std::int64_t evaluations = 0;    // those of steps that are done again included
  std::int64_t updates_twice = 0;  // at most: of steps that a lost worker had begun and another one did again
  double mttf_s = 0;               // mean time to the next failure of the job; 0: there were none
  bool is_mttf_given = false;      // by the scenario; false: as observed
  // The least and the greatest goodput of courses whose failures were drawn again, as often as `redraws` says; empty:
  // nothing is drawn.
  std::optional<double> least_goodput{}, greatest_goodput{};
  int redraws = 0;
  std::vector<std::string> unknown{};  // what the scenario does not state, and counts as 0: "detection"
  std::vector<BreakEven> break_even{};
  // Where both are known: the interval between checkpoints that loses least, sqrt(2 mttf time) (J. W. Young, "A first
  // order approximation to the optimum checkpoint interval", CACM 1974), and the share of the time that it leaves.
  std::optional<double> best_interval_s{}, best_availability{};
  // The shares of the states in equal slices of the time, in order.
  std::vector<std::array<double, kCourseStates>> slices{};

  // The time of the steps that remain on the undisturbed cluster, as a share of the whole: effective training time.
  double goodput() const { return seconds > 0 ? time_s[0] / seconds : 1; }
  bool operator==(const JobCourse&) const = default;
};

}  // namespace tandem
