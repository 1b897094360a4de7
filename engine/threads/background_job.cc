#include "engine/threads/background_job.h"

#include "topologies/base/error.h"

namespace tandem::threads {

BackgroundJob::BackgroundJob(RunControl& control, TaskPool& pool, Worker& worker, std::string name,
                             std::function<void()> function)
    : control_(control),
      function_(std::move(function)),
      job_{.name = std::move(name),
           .worker = &worker,
           .run = [this] { run(); },
           .ended = [this] { note_end(); },
           .family = new_family()} {
  pool.start(job_);
}

BackgroundJob::~BackgroundJob() {  // NOLINT(bugprone-exception-escape)
  Waiter::of_this_thread().wait(*this, &waiting_, Stoppable::no);
  const std::lock_guard announced(mutex_);
}

// If the run is stopped, the function ends by an exception from one of its waits. It must throw no other exception; one
// that does ends the run.
void BackgroundJob::run() {
  try {
    function_();
  } catch (...) {
    control_.stop();
  }
}

void BackgroundJob::note_end() {
  const std::lock_guard announcing(mutex_);
  has_ended_.store(true);
  waiting_.wake_all();
}

}  // namespace tandem::threads
