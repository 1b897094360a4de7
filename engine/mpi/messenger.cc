#include "engine/mpi/messenger.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>

#include "engine/task.h"

namespace tandem::mpi {
namespace {

using std::chrono::microseconds;
using threads::Clock;

constexpr auto kPatience = microseconds(100);  // for which a waiting stream looks for messages itself
constexpr auto kAlivePeriod = std::chrono::seconds(1);

// How long the thread sleeps between two looks: the longer nothing has come, the longer.
microseconds pause_after(Clock::duration quiet, bool is_awaited) {
  if (!is_awaited) return microseconds(500);
  if (quiet < std::chrono::milliseconds(5)) return microseconds(20);
  return quiet < std::chrono::milliseconds(200) ? microseconds(100) : microseconds(500);
}

}  // namespace

// The wait of the stream that executes a call for its process.
class Messenger::Turn final : public threads::Wait {
 public:
  Turn(const Messenger& messenger, const Call& state, const threads::CollectiveCall& call, Clock::time_point until)
      : messenger_(messenger), state_(state), call_(call), until_(until) {}
  bool is_over() const override {
    const State state = state_.state.load();
    if (state == State::go) return messenger_.turn_.load() == state_.ticket.load();
    if (state == State::broken || messenger_.is_stopped_.load()) return true;
    return until_ != threads::kNever && Clock::now() >= until_;
  }
  std::string text() const override { return call_.text(); }
  Clock::time_point ends_at() const override { return until_; }

 private:
  const Messenger& messenger_;
  const Call& state_;
  const threads::CollectiveCall& call_;
  const Clock::time_point until_;
};

Messenger::Messenger(Transport& transport, std::vector<std::string> places)
    : transport_(transport), places_(std::move(places)), heard_(places_.size(), Clock::now()) {
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
    if (progress()) {
      last = Clock::now();
      continue;
    }
    bool is_awaited = awaiting_.load() > 0;
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
  for (Message message; transport_.poll(message); has_any = true) {
    heard_[static_cast<std::size_t>(message.from)] = Clock::now();
    if (coordinator_) {
      const std::lock_guard coordinating(coordinator_mutex_);
      coordinator_->handle(message.from, message.text);
    } else {
      handle(message.text);
    }
  }
  return has_any;
}

// To a process, from the coordinator: to this one at once.
void Messenger::say(int to, std::string message) {
  if (to == transport_.rank()) return handle(message);
  transport_.post(to, std::move(message));
}

void Messenger::tell(MessageKind kind, const std::function<void(ByteWriter&)>& add) {
  ByteWriter bytes;
  bytes.put(kind);
  if (add) add(bytes);
  if (kind != MessageKind::stuck && kind != MessageKind::alive) {
    const std::lock_guard lock(mutex_);
    ++sent_;
  }
  if (!coordinator_) return transport_.post(0, bytes.take());
  const std::lock_guard lock(coordinator_mutex_);
  coordinator_->handle(0, bytes.take());
}

void Messenger::say_alive() {
  ByteWriter bytes;
  bytes.put(MessageKind::alive);
  const std::string message = bytes.take();
  if (!coordinator_) {
    if (!is_leaving_.load()) transport_.post(0, message);
    return;
  }
  const std::lock_guard lock(coordinator_mutex_);
  for (int to = 1; to < transport_.size(); ++to) {
    if (!coordinator_->has_left(to)) transport_.post(to, message);
  }
}

// Rank 0 hears everybody, and everybody rank 0.
void Messenger::check_silence() {
  if (is_leaving_.load() || has_lost_coordinator_.load()) return;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank == transport_.rank() || (!coordinator_ && rank != 0)) continue;
    {
      const std::lock_guard lock(coordinator_mutex_);
      if (coordinator_ && coordinator_->has_left(rank)) continue;
    }
    Clock::time_point heard;
    {
      const std::lock_guard lock(receiving_mutex_);
      heard = heard_[static_cast<std::size_t>(rank)];
    }
    if (std::chrono::duration<double>(Clock::now() - heard).count() < kSilence_s) continue;
    std::fputs(
        fmt::format("tandem: {} has not answered {} for {} s; the job ends\n", places_[static_cast<std::size_t>(rank)],
                    places_[static_cast<std::size_t>(transport_.rank())], kSilence_s)
            .c_str(),
        stderr);
    transport_.abort(kRunFailed);
  }
}

void Messenger::handle(const std::string& message) {
  ByteReader bytes(message);
  const auto kind = bytes.get<MessageKind>();
  if (kind == MessageKind::alive) return;
  if (kind == MessageKind::leave) return has_lost_coordinator_.store(true);
  {
    const std::lock_guard lock(mutex_);
    ++received_;
  }
  switch (kind) {
    case MessageKind::go: {
      const std::lock_guard lock(mutex_);
      const std::shared_ptr<Call> call = call_of(bytes.get<CallId>());
      call->ticket.store(tickets_++);
      call->state.store(State::go);
      break;
    }
    case MessageKind::broken: {
      const auto id = bytes.get<CallId>();
      note_broken(id, get_error(bytes).value().exception());
      break;
    }
    case MessageKind::stop: {
      const std::lock_guard lock(mutex_);
      is_stopped_.store(true);
      if (control_ != nullptr) control_->stop();
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

void Messenger::note_broken(const CallId& id, const std::exception_ptr& error) {
  std::shared_ptr<threads::CollectiveCall> call;
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Call> state = call_of(id);
    state->error = error;
    state->state.store(State::broken);
    call = state->call.lock();
  }
  if (call) call->break_now(error);
}

// Leaves the state of the next run, whose messages may come before it begins here.
void Messenger::note_end(std::optional<JobError> error) {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  error_ = std::move(error);
  control_ = nullptr;
  calls_.clear();
  announced_.clear();
  sent_ = received_ = tickets_ = 0;
  received_at_last_look_ = -1;
  was_stuck_ = false;
  turn_.store(0);
  is_stopped_.store(false);
  ended_.notify_all();
}

void Messenger::begin(threads::RunControl& control) {
  const std::lock_guard lock(mutex_);
  control_ = &control;
  if (is_stopped_.load()) control.stop();
}

void Messenger::fail(const std::exception_ptr& error) {
  tell(MessageKind::fail, [&](ByteWriter& bytes) { put_error(bytes, job_error_of(error)); });
}

std::exception_ptr Messenger::end(const std::exception_ptr& error) {
  awaiting_.fetch_add(1);
  tell(MessageKind::done, [&](ByteWriter& bytes) { put_error(bytes, job_error_of(error)); });
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return has_ended_; });
  awaiting_.fetch_sub(1);
  has_ended_ = false;
  if (!error_) return nullptr;
  return error_->rank == transport_.rank() && job_error_of(error) ? error : error_->exception();
}

// A look at the threads of this process found them stuck. It counts only if no message has come since the look before,
// which might have set one of them going.
void Messenger::note_stuck(std::string waits) {
  std::vector<OpenCall> open;
  std::int64_t sent = 0, received = 0;
  {
    const std::lock_guard lock(mutex_);
    if (received_ != std::exchange(received_at_last_look_, received_)) waits.clear();
    if (waits.empty() && !std::exchange(was_stuck_, false)) return;
    was_stuck_ = !waits.empty();
    sent = sent_;
    received = received_;
    for (const auto& [id, state] : calls_) {
      if (const auto call = state->call.lock()) open.push_back(open_call(id, *call));
    }
  }
  tell(MessageKind::stuck, [&](ByteWriter& bytes) {
    bytes.put(sent).put(received).put_text(waits).put(static_cast<std::uint64_t>(open.size()));
    for (const OpenCall& call : open) put_call(bytes, call);
  });
}

void Messenger::announce(std::uint64_t group, const std::vector<DeviceId>& devices, const std::vector<int>& owners) {
  {
    const std::lock_guard lock(mutex_);
    if (!announced_.insert(group).second) return;
  }
  tell(MessageKind::group, [&](ByteWriter& bytes) {
    bytes.put(group).put(static_cast<std::uint64_t>(devices.size()));
    for (std::size_t i = 0; i < devices.size(); ++i) bytes.put_text(devices[i].text()).put(owners[i]);
  });
}

std::shared_ptr<Messenger::Call> Messenger::call_of(const CallId& id) {
  std::shared_ptr<Call>& call = calls_[id];
  if (!call) call = std::make_shared<Call>();
  return call;
}

OpenCall Messenger::open_call(const CallId& id, const threads::CollectiveCall& call) const {
  OpenCall open{.id = id, .kind = call.spec().kind, .arrived = {}};
  for (int rank = 0; rank < call.ranks(); ++rank) {
    if (call.has_arrived(rank)) open.arrived.push_back(rank);
  }
  return open;
}

void Messenger::note_opened(const CallId& id, const std::shared_ptr<threads::CollectiveCall>& call) {
  std::exception_ptr broken;
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Call> state = call_of(id);
    state->call = call;
    if (state->state.load() == State::broken) broken = state->error;
  }
  if (broken) call->break_now(broken);
}

void Messenger::ask_to_break(const CallId& id, const threads::CollectiveCall& call, const std::exception_ptr& error) {
  tell(MessageKind::break_off, [&](ByteWriter& bytes) {
    put_call(bytes, open_call(id, call));
    put_error(bytes, job_error_of(error));
  });
}

// A call that has begun is completed in a stopped run, too: the other processes are inside it.
void Messenger::begin_turn(const CallId& id, const threads::CollectiveCall& call) {
  std::shared_ptr<Call> state;
  {
    const std::lock_guard lock(mutex_);
    state = call_of(id);
  }
  awaiting_.fetch_add(1);
  const CollectiveSpec& spec = call.spec();
  tell(MessageKind::arrive, [&](ByteWriter& bytes) {
    bytes.put(id).put(spec.kind).put(spec.dtype).put(spec.count).put(spec.reduction).put(spec.root);
  });
  threads::CallDeadline deadline = call.first_deadline();
  for (;;) {
    const Turn turn(*this, *state, call, deadline.at);
    for (const auto end = Clock::now() + kPatience; !turn.is_over() && Clock::now() < end;) {
      if (!progress()) sched_yield();
    }
    if (!turn.is_over()) threads::Waiter::of_this_thread().wait(turn, &waiters_, threads::Stoppable::no);
    const State now = state->state.load();
    if (now == State::go && !turn.is_over()) continue;
    if (now != State::open || is_stopped_.load()) break;
    if (deadline.at != threads::kNever && Clock::now() >= deadline.at) {
      ask_to_break(id, call, std::make_exception_ptr(call.deadline_error(deadline.rank, deadline.timeout_s)));
      deadline.at = threads::kNever;
    }
  }
  awaiting_.fetch_sub(1);
  const bool goes = state->state.load() == State::go;
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (state->state.load() == State::broken) error = state->error;
    calls_.erase(id);
  }
  if (error) std::rethrow_exception(error);
  if (!goes) throw RunStopped{};
}

void Messenger::end_turn() {
  turn_.fetch_add(1);
  waiters_.wake_all();
}

}  // namespace tandem::mpi
