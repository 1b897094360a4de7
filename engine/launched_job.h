// Processes that mpirun or srun has started together: who this one is among them and, where an engine spreads a run
// over them, what the command above it must know to speak for all.
//
// Threads: one, but for reports_for_job().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tandem {

struct Rank {
  int index = 0;
  int count = 1;
};

// Reads what Open MPI, MPICH and others with PMI, MVAPICH2 and Slurm's srun tell their processes; {0, 1} without them.
// Throws RunError for numbers that make no sense. `variable` returns the value of a variable, or null.
Rank rank_of_process(const std::function<const char*(const char* name)>& variable);
Rank rank_of_process();  // by this process's environment

// The processes of a run, once an engine has joined them (EngineInfo::join).
class LaunchedJob {
 public:
  virtual ~LaunchedJob() = default;
  virtual Rank rank() const = 0;
  // The names of their hosts, by rank.
  virtual const std::vector<std::string>& hosts() const = 0;
  // States what this process is about to run: by what it is called, such as "scenario", its value. Ranks that state
  // different things are refused when an engine is opened.
  virtual void state(std::map<std::string, std::string> what) = 0;
  // Waits until all processes call it, outside a run. Returns what they have passed, by rank. Throws RunError on all of
  // them where one has ended in a failure.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  // Ends this process's part, with the message of its failure or "", and waits until all do. Returns the messages that
  // rank 0 prints: those of all processes, without repetition. Nothing runs afterwards.
  virtual std::vector<std::string> leave(const std::string& failure) = 0;
  // Waits until all processes have come here, and no longer: a launcher may end the others as soon as one has ended in
  // a failure, before they have said what they had to say.
  virtual void part() = 0;
};

// Null where no engine has joined any.
LaunchedJob* joined_job();
void set_joined_job(LaunchedJob* job);

// Whether this process prints and writes what a run results in: all but one rank of a job leave it to rank 0.
bool reports_for_job();

// Says that this program cannot join a job, and why: engines throw UnavailableError instead. "": it can.
void refuse_jobs(std::string reason);
const std::string& reason_to_refuse_jobs();

}  // namespace tandem
