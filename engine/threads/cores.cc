#include "engine/threads/cores.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "engine/base/core_rules.h"
#include "engine/threads/futex.h"

namespace tandem::threads {
namespace {

std::vector<int> cpus_of(const cpu_set_t& allowed) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

int available_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void Cores::Claim::use_on_this_thread() {
  thread_ = gettid();
  last_cpu_ = sched_getcpu();
}

void Cores::limit() {
  CPU_ZERO(&allowed_);
  if (sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0) return;
  free_ = cpus_of(allowed_);
  is_limited_ = true;
}

void Cores::request(Claim& claim, When when) {
  if (!is_limited_) return;
  Grants grants;
  {
    const std::lock_guard lock(mutex_);
    if (claim.may_run_.load() != 0) {
      claim.is_kept_ = true;
      return;
    }
    claim.since_ = Clock::now();
    (claim.is_task_ ? tasks_ : streams_).push_back(&claim);
    in_line_.fetch_add(1);
    if (when == When::now) use_free_cores(grants);
  }
  run(grants);
}

void Cores::sleep(Claim& claim, Clock::time_point until) const {
  sleep_while(claim.may_run_, 0, until);
}

void Cores::await(Claim& claim) const {
  if (is_limited_) sleep(claim, Clock::time_point::max());
}

void Cores::release(Claim& claim) {
  if (!is_limited_) return;
  Grants grants;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(claim.is_kept_, false)) return;
    claim.may_run_.store(0);
    if (claim.cpu_ != kAnyCpu) hand_over(std::exchange(claim.cpu_, kAnyCpu), grants);
  }
  run(grants);
}

void Cores::offer(Claim& claim) {
  if (!has_line()) return;
  Grants grants;
  bool has_core = true;
  {
    const std::lock_guard lock(mutex_);
    use_free_cores(grants);
    const Clock::time_point now = Clock::now();
    const bool had_turn = now - claim.since_ > kCoreTurn;
    if (in_line_.load() > 0 && claim.cpu_ != kAnyCpu && (had_turn || !tasks_.empty())) {
      has_core = false;
      claim.may_run_.store(0);
      hand_over(std::exchange(claim.cpu_, kAnyCpu), grants);
      claim.since_ = now;
      had_turn ? streams_.push_back(&claim) : streams_.push_front(&claim);
      in_line_.fetch_add(1);
    }
  }
  run(grants);
  if (!has_core) await(claim);
}

void Cores::serve_line() {
  if (!has_line()) return;
  Grants grants;
  {
    const std::lock_guard lock(mutex_);
    use_free_cores(grants);
  }
  run(grants);
}

void Cores::relieve() {
  if (!has_line()) return;
  Grants grants;
  {
    const std::lock_guard lock(mutex_);
    use_free_cores(grants);
    const Clock::time_point latest = Clock::now() - kCorePatience;
    for (std::deque<Claim*>* line : {&tasks_, &streams_}) {
      while (!line->empty() && line->front()->since_ < latest) {
        grants.push_back({line->front(), kAnyCpu});
        line->pop_front();
        in_line_.fetch_sub(1);
      }
    }
  }
  run(grants);
}

// The first in line takes over this core, wherever it ran last: it is awake, and what its last thread has written is in
// its cache.
void Cores::hand_over(int cpu, Grants& grants) {
  if (in_line_.load() > 0) {
    grant_first(cpu, grants);
  } else {
    free_.push_back(cpu);
  }
  use_free_cores(grants);
}

void Cores::use_free_cores(Grants& grants) {
  while (!free_.empty() && in_line_.load() > 0) {
    const Claim& first = *(tasks_.empty() ? streams_ : tasks_).front();
    auto core = std::find(free_.begin(), free_.end(), first.last_cpu_);
    if (core == free_.end()) core = std::prev(free_.end());
    const int cpu = *core;
    free_.erase(core);
    grant_first(cpu, grants);
  }
}

void Cores::grant_first(int cpu, Grants& grants) {
  std::deque<Claim*>& line = tasks_.empty() ? streams_ : tasks_;
  Claim& claim = *line.front();
  line.pop_front();
  in_line_.fetch_sub(1);
  claim.cpu_ = claim.last_cpu_ = cpu;
  claim.since_ = Clock::now();
  grants.push_back({&claim, cpu});
}

// Without the lock, since the threads that begin to run may take over the caller's core.
//
// Binds each thread to its core: left alone, the system may queue it where it ran last, behind a thread that goes on.
void Cores::run(const Grants& grants) const {
  for (const auto& [claim, cpu] : grants) {
    if (cpu != claim->bound_to_) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      if (cpu != kAnyCpu) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
      sched_setaffinity(claim->thread_, sizeof(cpus), cpu == kAnyCpu ? &allowed_ : &cpus);
      claim->bound_to_ = cpu;
    }
    claim->may_run_.store(1);
    wake_sleeper(claim->may_run_);
  }
}

}  // namespace tandem::threads
