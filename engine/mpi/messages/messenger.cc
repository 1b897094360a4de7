#include "engine/mpi/messages/messenger.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/launched_job.h"

namespace tandem::mpi {
namespace {

using std::chrono::microseconds;
using threads::Clock;

constexpr auto kImpatience = microseconds(20);  // how long it does so without yielding its core
constexpr auto kPatience = microseconds(200);   // how long a waiting thread looks for messages itself
constexpr auto kAttention = microseconds(200);  // how long the thread keeps looking after a message about memory
constexpr auto kServing = std::chrono::milliseconds(200);  // how long more requests of a process are expected
constexpr auto kAlivePeriod = std::chrono::seconds(1);

// Returns how long the thread sleeps between two looks: longer if nothing has come for a long time.
microseconds pause_after(Clock::duration quiet, bool is_awaited) {
  if (!is_awaited) return microseconds(500);
  if (quiet < std::chrono::milliseconds(5)) return microseconds(20);
  return quiet < std::chrono::milliseconds(200) ? microseconds(100) : microseconds(500);
}

}  // namespace

// Waits, as the stream that executes a call for its process, until the call is decided.
class Messenger::Decision final : public threads::Wait {
 public:
  Decision(const Agreement::Ballot& ballot, const threads::CollectiveCall& call, Clock::time_point until)
      : ballot_(ballot), call_(call), until_(until) {}
  bool is_over() const override {
    return ballot_.is_decided() || (until_ != threads::kNever && Clock::now() >= until_);
  }
  std::string text() const override { return call_.text(); }
  Clock::time_point ends_at() const override { return until_; }

 private:
  const Agreement::Ballot& ballot_;
  const threads::CollectiveCall& call_;
  const Clock::time_point until_;
};

Messenger::Messenger(Transport& transport, std::vector<std::string> places)
    : transport_(transport),
      places_(std::move(places)),
      heard_(places_.size(), Clock::now()),
      is_lost_(places_.size()),
      agreement_(
          transport.rank(), places_,
          [this](int to, MessageKind kind, const std::function<void(ByteWriter&)>& add) { say_among(to, kind, add); }),
      sent_(places_.size()),
      received_(places_.size()) {
  if (transport_.rank() == 0) {
    coordinator_.emplace(places_, [this](int to, std::string message) { say(to, std::move(message)); });
  }
  thread_ = std::thread([this] { serve(); });
}

Messenger::~Messenger() {
  leave();
  is_ending_.store(true);
  thread_.join();
}

void Messenger::leave() {
  if (is_leaving_.exchange(true)) return;
  tell(MessageKind::leave);
  for (int to = 1; coordinator_ && to < transport_.size(); ++to) {
    ByteWriter bytes;
    bytes.put(MessageKind::leave);
    transport_.post(to, bytes.take());
  }
}

void Messenger::serve() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  Clock::time_point last = Clock::now(), alive = last - kAlivePeriod;
  while (!is_ending_.load()) {
    const Clock::time_point now = Clock::now();
    if (now - alive >= kAlivePeriod) {
      alive = now;
      say_alive();
      check_silence();
    }
    check_signal();
    if (progress()) {
      last = Clock::now();
      continue;
    }
    const Clock::time_point asked_at = asked_at_.load();
    if (now - kAttention < asked_at) {
      sched_yield();
      continue;
    }
    bool is_awaited = awaiting_.load() > 0 || now - kServing < asked_at;
    if (!is_awaited && coordinator_) {
      const std::lock_guard lock(coordinator_mutex_);
      is_awaited = coordinator_->is_awaited();
    }
    std::this_thread::sleep_for(pause_after(now - last, is_awaited));
  }
}

bool Messenger::progress() {
  const std::unique_lock lock(receiving_mutex_, std::try_to_lock);
  if (!lock) return false;
  bool has_any = false;
  for (Message message; transport_.poll(message); has_any = true) receive(std::move(message));
  if (handler_ != nullptr && handler_->progress()) {
    has_any = true;
    asked_at_.store(Clock::now());
    waiters_.wake_all();
  }
  return has_any;
}

void Messenger::receive(Message message) {
  const auto from = static_cast<std::size_t>(message.from);
  if (is_lost_[from]) return;  // this process was told before it had read all
  heard_[from] = Clock::now();
  if (message.tells_loss) return lose(message.from);
  ByteReader bytes(message.text);
  const auto kind = bytes.get<MessageKind>();
  if (is_among_processes(kind)) {
    handle_among(std::move(message));
  } else if (kind == MessageKind::gone) {
    transport_.drop(bytes.get<int>());
  } else if (kind == MessageKind::signal) {
    end_interrupted(message.from, bytes.get<int>());
  } else if (coordinator_) {
    const std::lock_guard coordinating(coordinator_mutex_);
    coordinator_->handle(message.from, message.text);
  } else {
    handle(message.text);
  }
}

// Drops messages of former runs, for which nobody waits any more. A message is counted after it has taken effect.
void Messenger::handle_among(Message message) {
  const int from = message.from;
  ByteReader bytes(message.text);
  const auto kind = bytes.get<MessageKind>();
  const auto run = bytes.get<std::int64_t>();
  {
    const std::lock_guard lock(mutex_);
    if (run != run_) return;
  }
  if (kind == MessageKind::remote) {
    if (handler_ == nullptr) {
      early_.push_back(std::move(message));
      return;
    }
    handler_->handle(from, bytes);
    asked_at_.store(Clock::now());
  } else {
    agreement_.handle(from, kind, bytes);
    if (kind == MessageKind::order) asked_at_.store(Clock::now());
  }
  {
    const std::lock_guard lock(mutex_);
    ++received_[static_cast<std::size_t>(from)];
  }
  waiters_.wake_all();
}

// Sends a message of the coordinator to a process; handles one to this process immediately.
void Messenger::say(int to, std::string message) {
  if (to == transport_.rank()) return handle(message);
  transport_.post(to, std::move(message));
}

void Messenger::say_among(int to, MessageKind kind, const std::function<void(ByteWriter&)>& add) {
  ByteWriter bytes;
  {
    const std::lock_guard lock(mutex_);
    ++sent_[static_cast<std::size_t>(to)];
    bytes.put(kind).put(run_);
  }
  add(bytes);
  transport_.post(to, bytes.take());
}

void Messenger::tell(MessageKind kind, const std::function<void(ByteWriter&)>& add) {
  ByteWriter bytes;
  bytes.put(kind);
  if (add) add(bytes);
  if (!coordinator_) return transport_.post(0, bytes.take());
  const std::lock_guard lock(coordinator_mutex_);
  coordinator_->handle(0, bytes.take());
}

void Messenger::handle(const std::string& message) {
  ByteReader bytes(message);
  switch (bytes.get<MessageKind>()) {
    case MessageKind::alive:
      return;
    case MessageKind::leave:
      return has_lost_coordinator_.store(true);
    case MessageKind::lost:
      return end_with(bytes.get_text());
    case MessageKind::stop: {
      agreement_.stop();
      const std::lock_guard lock(mutex_);
      error_ = get_error(bytes);
      is_stopped_.store(true);
      if (control_ != nullptr) control_->stop();
      changed_.notify_all();
      break;
    }
    case MessageKind::finish: {
      const std::lock_guard lock(mutex_);
      have_programs_ended_ = true;
      changed_.notify_all();
      break;
    }
    case MessageKind::end:
      note_end(get_error(bytes));
      break;
    default:
      TANDEM_UNREACHABLE("a message of the coordinator that is none");
  }
  waiters_.wake_all();
}

// Prepares the state for the next run, whose messages may come before it begins here.
void Messenger::note_end(std::optional<JobError> error) {
  agreement_.begin_next_run();
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  error_ = std::move(error);
  control_ = nullptr;
  ++run_;
  std::fill(sent_.begin(), sent_.end(), 0);
  std::fill(received_.begin(), received_.end(), 0);
  received_at_last_look_ = -1;
  was_still_ = have_programs_ended_ = has_job_ended_ = had_job_ended_at_last_look_ = false;
  is_stopped_.store(false);
  changed_.notify_all();
}

void Messenger::begin(threads::RunControl& control, MessageHandler* handler) {
  const std::lock_guard receiving(receiving_mutex_);
  {
    const std::lock_guard lock(mutex_);
    control_ = &control;
    if (is_stopped_.load()) control.stop();
  }
  handler_ = handler;
  for (const LostRank& lost : lost_ranks()) {
    if (handler_ != nullptr) handler_->lose(lost.rank, loss_error(lost.rank));
  }
  for (Message& message : std::exchange(early_, {})) {
    if (!is_lost_[static_cast<std::size_t>(message.from)]) handle_among(std::move(message));
  }
}

void Messenger::fail(const std::exception_ptr& error) {
  tell(MessageKind::fail, [&](ByteWriter& bytes) { put_error(bytes, job_error_of(error)); });
}

void Messenger::throw_if_failed_at(int rank) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_.load() && error_ && error_->rank == rank) error_->rethrow();
}

void Messenger::await_programs() {
  awaiting_.fetch_add(1);
  tell(MessageKind::idle);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return have_programs_ended_ || is_stopped_.load(); });
  awaiting_.fetch_sub(1);
}

void Messenger::note_end_of_job() {
  const std::lock_guard lock(mutex_);
  has_job_ended_ = true;
}

std::exception_ptr Messenger::end(const std::exception_ptr& error) {
  awaiting_.fetch_add(1);
  tell(MessageKind::done, [&](ByteWriter& bytes) { put_error(bytes, job_error_of(error)); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_ended_; });
  awaiting_.fetch_sub(1);
  has_ended_ = false;
  lock.unlock();
  {
    const std::lock_guard receiving(receiving_mutex_);
    handler_ = nullptr;
    early_.clear();
  }
  if (!error_) return nullptr;
  return error_->rank == transport_.rank() && job_error_of(error) ? error : error_->exception();
}

// Notes whether a look at the threads of this process found them still. It counts only if no message, which might have
// set a thread going, has come since the look before.
void Messenger::note_still(std::optional<std::string> waits) {
  Stillness stillness{.is_still = waits.has_value(), .waits = std::move(waits).value_or("")};
  if (stillness.is_still) stillness.open = agreement_.open_calls();
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t received = std::accumulate(received_.begin(), received_.end(), std::int64_t{0});
    if (received != std::exchange(received_at_last_look_, received)) stillness.is_still = false;
    stillness.losses = static_cast<int>(lost_.size());
    stillness.is_after_end_of_job = std::exchange(had_job_ended_at_last_look_, has_job_ended_);
    if (!stillness.is_still && !std::exchange(was_still_, false)) return;
    was_still_ = stillness.is_still;
    stillness.sent = sent_;
    stillness.received = received_;
  }
  tell(MessageKind::still, [&](ByteWriter& bytes) { put_stillness(bytes, stillness); });
}

void Messenger::look_while_waiting(const threads::Wait& wait) {
  const auto start = Clock::now();
  for (auto now = start; !wait.is_over() && now < start + kPatience; now = Clock::now()) {
    if (!progress() && now > start + kImpatience) sched_yield();
  }
}

void Messenger::wait_as_task(const threads::Wait& wait, threads::RunControl& control) {
  awaiting_.fetch_add(1);
  look_while_waiting(wait);
  try {
    if (!wait.is_over()) control.wait_as_task(wait, &waiters_);
  } catch (...) {
    awaiting_.fetch_sub(1);
    throw;
  }
  awaiting_.fetch_sub(1);
}

void Messenger::wait_on_stream(const threads::Wait& wait) {
  awaiting_.fetch_add(1);
  look_while_waiting(wait);
  if (!wait.is_over()) threads::Waiter::of_this_thread().wait(wait, &waiters_, threads::Stoppable::no);
  awaiting_.fetch_sub(1);
}

// A call that takes place is executed even in a stopped run, because the other processes execute it.
AgreedCall Messenger::agree(const CallId& id, const threads::CollectiveCall& call, CallOrder order,
                            std::string values) {
  awaiting_.fetch_add(1);
  const std::shared_ptr<const Agreement::Ballot> ballot = agreement_.vote(id, call, order, std::move(values));
  threads::CallDeadline deadline = call.first_deadline();
  for (;;) {
    const Decision decision(*ballot, call, deadline.at);
    look_while_waiting(decision);
    if (!decision.is_over()) threads::Waiter::of_this_thread().wait(decision, &waiters_, threads::Stoppable::no);
    if (ballot->is_decided()) break;
    if (deadline.at != threads::kNever && Clock::now() >= deadline.at) {
      agreement_.give_up(id, call, std::make_exception_ptr(call.deadline_error(deadline.rank, deadline.timeout_s)));
      deadline.at = threads::kNever;
    }
  }
  awaiting_.fetch_sub(1);
  return agreement_.take(id);
}

void Messenger::end_turn(const CallId& id, CallOrder order) {
  agreement_.end_turn(id, order);
  waiters_.wake_all();
}

}  // namespace tandem::mpi
