// Processes that mpirun or srun has started together, or that are the tasks of one cluster: the rank of this one and,
// where an engine spreads a run over them, what the command needs to speak for all of them.
//
// Threads: one, except for reports_for_job() and the signal.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tandem {

struct Rank {
  int index = 0;
  int count = 1;
  int on_host = 0;  // its index among those of its host, as far as the launcher tells
};

// Reads what Open MPI, MPICH and others with PMI, MVAPICH2 and Slurm's srun tell their processes; {0, 1} without them.
// Throws RunError for numbers that are no ranks. `variable` returns the value of a variable, or null.
Rank rank_of_process(const std::function<const char*(const char* name)>& variable);
Rank rank_of_process();  // by this process's environment

// The tasks of a cluster, each started by itself, without a launcher: they meet at their addresses.
struct TaskList {
  std::vector<std::string> names{};      // by rank: "chief 0", "worker 0"
  std::vector<std::string> addresses{};  // "host:port"
  int index = 0;                         // this process
};
// Says that this process is one of them. An engine that spreads a run over processes (EngineInfo::join) then joins
// them, unless a launcher has started this process together with others. Call it before any engine is opened.
void set_tasks(TaskList tasks);
const TaskList& tasks_of_process();  // empty at first

std::string host_name();
// The variable that tells the number of the processes, such as "OMPI_COMM_WORLD_SIZE"; "" where there is none.
std::string count_variable_of_process();

// The processes of a run, once an engine has joined them (EngineInfo::join).
class LaunchedJob {
 public:
  virtual ~LaunchedJob() = default;
  virtual Rank rank() const = 0;
  // The names of their hosts, by rank.
  virtual const std::vector<std::string>& hosts() const = 0;
  // States what this process is about to run, as values by name, such as "scenario", besides what it has stated before.
  // Opening an engine fails where ranks state different things.
  virtual void state(std::map<std::string, std::string> what) = 0;
  // Waits until all processes call it, outside a run, and returns what each has passed, by rank. Throws RunError in all
  // of them if one has ended with a failure.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  // Ends this process's part, with the message of its failure or "", and waits until all do. Returns the messages that
  // rank 0 prints: those of all processes, without repetition. Nothing runs afterwards.
  virtual std::vector<std::string> leave(const std::string& failure) = 0;
  // Waits until all processes have called it, and leaves the job; the last call of every process. A launcher may kill
  // all processes as soon as one exits with a failure, so each of them first prints its messages and then calls this.
  virtual void part() = 0;
};

// Null where no engine has joined any.
LaunchedJob* joined_job();
void set_joined_job(LaunchedJob* job);

// Whether this process prints and writes results. In a job, only rank 0 does.
bool reports_for_job();

// Notes that this process was sent a signal that ends the job which it has joined or is joining. Signal handlers may
// call it.
void interrupt_job(int signal);
int signal_to_job();  // 0: none

// What this program does, such as "tandem 0.1.0 run"; "" at first. Processes that do different things cannot join.
void set_purpose(std::string purpose);
const std::string& purpose();

// Forbids this program to join a job: engines throw UnavailableError with this reason instead. "" permits it.
void refuse_jobs(std::string reason);
const std::string& reason_to_refuse_jobs();

}  // namespace tandem
