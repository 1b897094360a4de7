// A task on a thread of the pool that runs beside the one that started it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "engine/task.h"
#include "engine/threads/task_pool.h"

namespace tandem::threads {

class BackgroundJob final : public BackgroundTask, private Wait {
 public:
  BackgroundJob(RunControl& control, TaskPool& pool, Worker& worker, std::string name, std::function<void()> function);
  ~BackgroundJob() override;  // NOLINT(bugprone-exception-escape): if it cannot wait, the end
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

 private:
  void run();
  void note_end();
  bool is_over() const override { return has_ended_.load(); }
  std::string text() const override { return job_.name + " to end"; }

  RunControl& control_;
  std::function<void()> function_;
  Job job_;
  std::atomic<bool> has_ended_{false};
  std::mutex mutex_;  // guards the object's life: held while the end is announced
  WaitList waiting_;
};

}  // namespace tandem::threads
