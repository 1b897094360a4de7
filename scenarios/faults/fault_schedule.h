// What goes wrong in a job, in the order of its dates: what a scenario states, and what it says happens at random.
//
// Random dates are drawn from the seeds alone, so that equal scenarios have equal faults, whatever the job makes of
// them.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "scenarios/faults/fault_settings.h"

namespace tandem {

struct ClusterEvent {
  enum class Kind : std::uint8_t { slow_begins, slow_ends, lost, back, server_back, node_comes, node_goes };
  double date_s = 0;
  Kind kind = Kind::lost;
  int fault = -1;      // among FaultSettings::slow or ::fail
  int worker = 0;      // that trains, or the server
  std::string node{};  // of a trace
};

class FaultSchedule {
 public:
  // `settings` must outlive it. `workers`: that train.
  FaultSchedule(const FaultSettings& settings, int workers);

  double next_date_s() const;  // infinity where nothing more happens
  ClusterEvent take();         // the next event, of which there must be one
  void add(ClusterEvent event);
  // How many of the events to come bring a machine.
  int returns() const { return returns_; }

  // Failures that come at random: how many of them a job meets in a second, in the mean.
  double failure_rate() const { return failure_rate_; }

 private:
  struct Entry {
    ClusterEvent event{};
    std::uint64_t number = 0;  // equal dates keep their order
    int process = -1;          // that goes on after it; -1: none
    bool operator>(const Entry& other) const {
      return event.date_s != other.event.date_s ? event.date_s > other.event.date_s : number > other.number;
    }
  };
  // What comes again and again.
  struct Process {
    ClusterEvent::Kind kind = ClusterEvent::Kind::lost;
    int fault = 0;
    bool draws_worker = false;
    int worker = 0;
    double mean_s = 0, duration_s = 0;
    std::uint64_t seed = 0, draws = 0;
  };

  void add_process(Process process, const FaultTarget& target);
  void schedule(int process, double after_s);
  double uniform(Process& process) const;  // in (0, 1]

  const int workers_;
  std::vector<Process> processes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::uint64_t added_ = 0;
  int returns_ = 0;
  double failure_rate_ = 0;
};

}  // namespace tandem
