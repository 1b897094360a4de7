#include "engine/threads/waiter.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/core_rules.h"
#include "engine/threads/futex.h"
#include "engine/threads/run_control.h"
#include "topologies/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tandem::threads {
namespace {

thread_local Waiter* current_waiter = nullptr;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

Clock::time_point deadline_after(std::optional<double> timeout_s) {
  constexpr double kLongest = 1e9;  // 30 years: later deadlines do not fit the clock
  if (!timeout_s || *timeout_s > kLongest) return kNever;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*timeout_s));
}

void WaitList::add(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiters_.push_back(&waiter);
  count_.store(static_cast<int>(waiters_.size()));
}

void WaitList::remove(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  count_.store(static_cast<int>(waiters_.size()));
}

void WaitList::wake_all() {
  if (count_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (Waiter* waiter : waiters_) waiter->unpark();
}

void WaitList::wake(int count) {
  if (count_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (Waiter* waiter : waiters_) {
    if (count-- <= 0) return;
    waiter->unpark();
  }
}

Waiter::Waiter(RunControl& control, std::string name, bool is_of_tasks)
    : control_(control), name_(std::move(name)), claim_(is_of_tasks) {
  control_.add(*this);
}

Waiter::~Waiter() {
  control_.remove(*this);
}

Waiter& Waiter::of_this_thread() {
  TANDEM_REQUIRE(current_waiter != nullptr, "a blocking call from a thread that is no task of the run");
  return *current_waiter;
}

void Waiter::use_on_this_thread() {
  current_waiter = this;
  claim_.use_on_this_thread();
  control_.cores().request(claim_, Cores::When::now);
  control_.cores().await(claim_);
  control_.active_threads().fetch_add(1);
  note_cpu();
  const std::lock_guard lock(mutex_);
  has_thread_ = pthread_getcpuclockid(pthread_self(), &cpu_clock_) == 0;
}

void Waiter::leave_this_thread() {
  current_waiter = nullptr;
  control_.active_threads().fetch_sub(1);
  leave_cpu();
  control_.cores().release(claim_);
  const std::lock_guard lock(mutex_);
  has_thread_ = false;
}

Task* Waiter::set_task(Task* task) {
  const std::lock_guard lock(mutex_);
  return std::exchange(task_, task);
}

bool Waiter::wait(const Wait& wait, WaitList* list, Stoppable stoppable) {
  if (before_blocking_ != nullptr && !wait.is_over()) {
    for (const BeforeBlocking* before = before_blocking_; before != nullptr; before = before->outer) before->call();
  }
  if (spin(wait)) return true;
  if (list != nullptr) list->add(*this);
  {
    const std::lock_guard lock(mutex_);
    wait_ = &wait;
    ++waits_;
  }
  bool is_over = wait.is_over();
  while (!is_over && !(stoppable == Stoppable::yes && control_.is_stopped())) {
    park(wait.ends_at());
    is_over = wait.is_over();
  }
  {
    const std::lock_guard lock(mutex_);
    wait_ = nullptr;
  }
  if (list != nullptr) list->remove(*this);
  return is_over;
}

// Spins only while every thread that wants a core can have one, and none shares this thread's core, because the awaited
// thread may need it.
bool Waiter::spin(const Wait& wait) {
  if (wait.is_over()) return true;
  note_cpu();
  const std::atomic<int>& neighbours = control_.active_threads_on(cpu_);
  const auto end = Clock::now() + kCoreSpin;
  do {
    for (int i = 0; i < 8; ++i) {
      if (control_.is_crowded()) return false;
      if (neighbours.load(std::memory_order_relaxed) > 1) return false;
      relax();
      if (wait.is_over()) return true;
    }
    // A thread that is waking up may be queued behind this one.
    if (control_.waking_threads().load(std::memory_order_relaxed) > 0) sched_yield();
  } while (Clock::now() < end);
  return false;
}

void Waiter::note_cpu() {
  const int cpu = std::max(0, sched_getcpu());
  if (cpu == cpu_) return;
  leave_cpu();
  cpu_ = cpu;
  control_.active_threads_on(cpu_).fetch_add(1, std::memory_order_relaxed);
}

void Waiter::leave_cpu() {
  if (cpu_ == kNoCpu) return;
  control_.active_threads_on(cpu_).fetch_sub(1, std::memory_order_relaxed);
  cpu_ = kNoCpu;
}

// The protocol of token_ between the thread that parks and those that unpark it:
//
//   from      | by park()                          | by unpark()
//   ----------|------------------------------------|----------------------------------------------
//   kNothing  | -> kParked, then sleeps            | -> kPermit: the next park() returns immediately
//   kPermit   | -> kNothing, does not sleep        | stays
//   kParked   | deadline over: -> kNothing, awake  | -> kPermit, then wakes the sleeper
//
// The thread that moves the token out of kParked counts the sleeper as active. So a waker counts it before it runs,
// and spinning threads make room for it; a sleeper whose deadline is over counts itself.
void Waiter::park(Clock::time_point until) {
  int expected = kNothing;
  control_.active_threads().fetch_sub(1);
  leave_cpu();
  if (token_.compare_exchange_strong(expected, kParked)) {
    Cores& cores = control_.cores();
    cores.release(claim_);
    cores.are_limited() ? cores.sleep(claim_, until) : sleep_while(token_, kParked, until);
    int parked = kParked;
    if (token_.compare_exchange_strong(parked, kNothing)) {
      control_.active_threads().fetch_add(1);
      cores.request(claim_, Cores::When::now);
    }
    cores.await(claim_);
    if (parked != kParked) control_.waking_threads().fetch_sub(1);
  } else {
    control_.active_threads().fetch_add(1);
  }
  note_cpu();
  token_.exchange(kNothing);
}

void Waiter::unpark() {
  if (token_.load() == kPermit) return;
  if (token_.exchange(kPermit) != kParked) return;
  control_.active_threads().fetch_add(1);
  control_.waking_threads().fetch_add(1);
  if (!control_.cores().are_limited()) return wake_sleeper(token_);
  const bool is_stream = current_waiter != nullptr && !current_waiter->claim_.is_task();
  control_.cores().request(claim_, is_stream ? Cores::When::soon : Cores::When::now);
}

void Waiter::offer_core() {
  Cores& cores = control_.cores();
  if (!cores.are_limited() || !cores.has_line()) return;
  leave_cpu();
  cores.offer(claim_);
  note_cpu();
}

Waiter::Observation Waiter::observe() const {
  const std::lock_guard lock(mutex_);
  Observation seen{.is_task = task_ != nullptr, .waits = waits_};
  if (wait_ != nullptr && !wait_->is_over()) {
    const State blocked = wait_->ends_at() == kNever ? State::blocked : State::blocked_until_deadline;
    seen.state = wait_->is_idle() ? State::idle : blocked;
  } else if (timespec time{}; has_thread_ && clock_gettime(cpu_clock_, &time) == 0) {
    seen.cpu_time_ns = static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }
  return seen;
}

std::string Waiter::wait_text() const {
  const std::lock_guard lock(mutex_);
  if (wait_ == nullptr || wait_->is_idle()) return "";
  return (task_ != nullptr ? task_->name() : name_) + " waits for " + wait_->text();
}

}  // namespace tandem::threads
