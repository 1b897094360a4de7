// A process's part of engine/mpi/messages/protocol.h: a thread that receives the messages of others and wakes those
// that wait for them and, on rank 0, the coordinator.
//
// Threads: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/mpi/messages/agreement.h"
#include "engine/mpi/messages/coordinator.h"
#include "engine/mpi/transport/transport.h"
#include "engine/threads/neighbours.h"

namespace tandem::mpi {

// Handles those messages of a run that are about devices and memory.
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void handle(int from, ByteReader& bytes) = 0;
  // Checks what else is under way. Returns false if nothing has happened.
  virtual bool progress() = 0;
  // Ends what a rank has begun that was lost, after all of its messages. `error` is for those that wait for it.
  virtual void lose(int rank, const std::exception_ptr& error) = 0;
};

// A rank that the job goes on without.
struct LostRank {
  int rank = 0;
  threads::Clock::time_point at;  // when it was noticed
};

class Messenger {
 public:
  // A process that is silent for this long ends the job.
  static constexpr double kSilence_s = 20;

  Messenger(Transport& transport, std::vector<std::string> places);
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // See threads::Neighbours.
  void begin(threads::RunControl& control, MessageHandler* handler);
  void fail(const std::exception_ptr& error);
  void note_still(std::optional<std::string> waits);
  void await_programs();
  void note_end_of_job();
  std::exception_ptr end(const std::exception_ptr& error);

  Agreement& agreement() { return agreement_; }
  // Votes for a call. Then waits, on the thread of a stream, until the call can be executed. Throws the error of a call
  // that was refused, and RunStopped. Call end_turn() after executing a call that has an order.
  AgreedCall agree(const CallId& id, const threads::CollectiveCall& call, CallOrder order, std::string values);
  void end_turn(const CallId& id, CallOrder order);

  void say_among(int to, MessageKind kind, const std::function<void(ByteWriter&)>& add);
  void wake() { waiters_.wake_all(); }  // those in the next two functions
  // Wait for what a message brings: as a task, whose wait ends in a stopped run, or as a stream, whose wait does not.
  void wait_as_task(const threads::Wait& wait, threads::RunControl& control);
  void wait_on_stream(const threads::Wait& wait);
  // Throws the failure that has stopped the run if it is the failure of process `rank`.
  void throw_if_failed_at(int rank);

  std::vector<LostRank> lost_ranks();

  // Tells the others to expect nothing more from this process.
  void leave();

 private:
  class Decision;

  void serve();
  bool progress();  // handles the messages that have come; returns false if there were none
  void receive(Message message);
  void handle(const std::string& message);  // from the coordinator
  void handle_among(Message message);
  void note_end(std::optional<JobError> error);
  void tell(MessageKind kind, const std::function<void(ByteWriter&)>& add = {});  // the coordinator
  void say(int to, std::string message);                                          // as the coordinator
  void look_while_waiting(const threads::Wait& wait);
  void check_silence();
  void end_without(int rank);
  void end_with(const std::string& reason);  // of rank 0
  void check_signal();
  void end_interrupted(int rank, int signal);
  void say_alive();
  void lose(int rank);
  void tell_loss(int rank);
  std::exception_ptr loss_error(int rank) const;

  Transport& transport_;
  const std::vector<std::string> places_;
  std::mutex coordinator_mutex_;  // guards coordinator_; taken before mutex_
  std::optional<Coordinator> coordinator_;
  std::mutex receiving_mutex_;                     // guards the next four
  std::vector<threads::Clock::time_point> heard_;  // by rank
  MessageHandler* handler_ = nullptr;
  std::vector<Message> early_;  // of a run that has not begun here
  std::vector<bool> is_lost_;   // by rank
  Agreement agreement_;

  std::mutex mutex_;  // guards the state of the run down to has_ended_
  std::vector<LostRank> lost_;
  threads::RunControl* control_ = nullptr;
  std::int64_t run_ = 0;                       // number of the run
  std::vector<std::int64_t> sent_, received_;  // messages among processes in this run, by the other process
  std::int64_t received_at_last_look_ = -1;
  bool was_still_ = false;
  bool have_programs_ended_ = false;
  bool has_job_ended_ = false, had_job_ended_at_last_look_ = false;
  std::optional<JobError> error_;
  bool has_ended_ = false;
  std::condition_variable changed_;

  std::atomic<bool> is_stopped_{false};
  std::atomic<int> awaiting_{0};  // threads that wait for a message
  // When a message about devices or memory, a question for places, or a transfer, last had its effect.
  std::atomic<threads::Clock::time_point> asked_at_{threads::Clock::time_point::min()};
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> is_leaving_{false};
  std::atomic<bool> has_lost_coordinator_{false};  // rank 0 takes part in no more runs
  // When this process has told rank 0 of a signal; only the thread uses it.
  std::optional<threads::Clock::time_point> signalled_at_;
  threads::WaitList waiters_;
  std::thread thread_;
};

}  // namespace tandem::mpi
