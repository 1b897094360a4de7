// Child processes that do numbered jobs, each one job at a time. They are forks, so they have what this process has; a
// job that brings down its process costs that job only.
//
// Threads: the process must have only one, since it forks. Children end with the pool, or when this process is gone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem {

class ProcessPool {
 public:
  // Runs in the children; must not throw.
  using Job = std::function<std::string(int job)>;
  struct Events {
    std::function<void(int job, const std::string& result)> done;
    std::function<void(int job, const std::string& why)> lost;  // "ended by signal 9 (Killed)"
    std::function<void()> tick;                                 // a few times a second; may throw
    std::function<void(int job)> begun{};                       // may be empty
    std::function<bool(int job)> is_wanted{};                   // asked before a job begins; may be empty: all are
  };

  // Throws RunError if the system gives not even one process.
  ProcessPool(int processes, Job job);
  ~ProcessPool();  // ends the children immediately, without waiting for their jobs
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  // Does all jobs that are wanted, which begin in this order as processes become free. Passes on what the events throw.
  void run(std::span<const int> jobs, const Events& events);

 private:
  class Child;

  bool add_child();
  bool give(Child& child, const Events& events);
  void read_from(std::size_t index, const Events& events);
  void lose(std::size_t index, const Events& events);

  Job job_;
  std::vector<std::unique_ptr<Child>> children_;
  std::span<const int> waiting_;
};

// Returns how many processors this process may use.
int usable_processors();

}  // namespace tandem
