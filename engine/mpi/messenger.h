// A process's part of engine/mpi/protocol.h: a thread that receives what others say, for the streams that wait for it,
// and, on rank 0, the coordinator.
//
// Threads: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/mpi/coordinator.h"
#include "engine/mpi/transport.h"
#include "engine/threads/collective_call.h"
#include "engine/threads/neighbours.h"

namespace tandem::mpi {

class Messenger {
 public:
  // A process that says nothing for so long ends the job.
  static constexpr double kSilence_s = 20;

  Messenger(Transport& transport, std::vector<std::string> places);
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // See threads::Neighbours.
  void begin(threads::RunControl& control);
  void fail(const std::exception_ptr& error);
  void note_stuck(std::string waits);
  std::exception_ptr end(const std::exception_ptr& error);

  // Describes a group, once in a run and before its first call. `owners` are the processes of its devices.
  void announce(std::uint64_t group, const std::vector<DeviceId>& devices, const std::vector<int>& owners);
  // Makes a call known, so that it can be broken.
  void note_opened(const CallId& id, const std::shared_ptr<threads::CollectiveCall>& call);
  void ask_to_break(const CallId& id, const threads::CollectiveCall& call, const std::exception_ptr& error);
  // Waits, on the thread of a stream, until the call is to be executed; end_turn() must follow. Throws the error of a
  // call that was broken, and RunStopped.
  void begin_turn(const CallId& id, const threads::CollectiveCall& call);
  void end_turn();

  // Nobody need answer any more.
  void leave();

 private:
  class Turn;
  enum class State : std::uint8_t { open, go, broken };
  struct Call {
    std::weak_ptr<threads::CollectiveCall> call;
    std::atomic<State> state{State::open};
    std::atomic<std::int64_t> ticket{-1};
    std::exception_ptr error;  // written before `broken`
  };

  void serve();
  bool progress();  // handles what has come; false where nothing had
  void handle(const std::string& message);
  void note_broken(const CallId& id, const std::exception_ptr& error);
  void note_end(std::optional<JobError> error);
  void tell(MessageKind kind, const std::function<void(ByteWriter&)>& add = {});
  void say(int to, std::string message);
  void check_silence();
  void say_alive();
  std::shared_ptr<Call> call_of(const CallId& id);  // with mutex_ held
  OpenCall open_call(const CallId& id, const threads::CollectiveCall& call) const;

  Transport& transport_;
  const std::vector<std::string> places_;
  std::mutex coordinator_mutex_;  // guards the next one; taken before mutex_
  std::optional<Coordinator> coordinator_;
  std::mutex receiving_mutex_;
  std::vector<threads::Clock::time_point> heard_;  // by rank; under receiving_mutex_

  std::mutex mutex_;  // guards the state of the run down to has_ended_
  threads::RunControl* control_ = nullptr;
  std::map<CallId, std::shared_ptr<Call>> calls_;
  std::set<std::uint64_t> announced_;
  std::int64_t sent_ = 0, received_ = 0, received_at_last_look_ = -1;
  std::int64_t tickets_ = 0;
  bool was_stuck_ = false;
  bool has_ended_ = false;
  std::optional<JobError> error_;
  std::condition_variable ended_;

  std::atomic<bool> is_stopped_{false};
  std::atomic<std::int64_t> turn_{0};
  std::atomic<int> awaiting_{0};  // threads that wait for a message
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> is_leaving_{false};
  std::atomic<bool> has_lost_coordinator_{false};  // it takes part in no further run
  threads::WaitList waiters_;
  std::thread thread_;
};

}  // namespace tandem::mpi
