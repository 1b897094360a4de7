// A process's votes for the calls of groups that span processes: see engine/mpi/messages/protocol.h.
//
// Threads: any. `post` is called with a lock held, and must not call back.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/mpi/messages/protocol.h"
#include "engine/threads/collective_call.h"

namespace tandem::mpi {

// A group whose devices are in several processes.
struct SpanningGroup {
  std::uint64_t hash = 0;
  std::vector<DeviceId> devices;
  std::vector<int> owners;     // the process of each
  std::vector<int> processes;  // ascending

  int leader() const { return processes.front(); }
};

// Says which calls a process executes one after the other, in an order that it shares with other processes.
enum class CallOrder : std::uint8_t {
  none,   // none: the values are in the votes
  group,  // those of the group: MPI executes them
  job     // those of all groups: GPUs execute them
};

// How to execute a call that takes place.
struct AgreedCall {
  std::vector<std::string> values;  // what each process of the group has put into its vote, in their order
  int tag = 0;                      // for a call that MPI executes: chosen by the leader, in use for nothing else
};

class Agreement {
 public:
  // Sends a message of the kind "among processes" to another process.
  using Post = std::function<void(int to, MessageKind kind, const std::function<void(ByteWriter&)>& add)>;
  // `names` are those of the processes: "rank 1 on node7".
  Agreement(int rank, std::vector<std::string> names, Post post);

  // A call of this process, as the votes see it.
  class Ballot {
   public:
    // Whether the call was refused, or takes place and is its group's next.
    bool is_decided() const;
    bool takes_place() const { return state_.load() == State::takes_place; }

   private:
    friend class Agreement;
    enum class State : std::uint8_t { open, takes_place, refused };
    struct Vote {
      CollectiveSpec spec;
      std::string values;
    };

    std::atomic<State> state_{State::open};
    CallOrder order_ = CallOrder::none;
    std::atomic<std::int64_t> place_{-1};  // in its order; -1: not known yet
    const std::atomic<std::int64_t>* turn_ = nullptr;
    bool has_voted_ = false;
    bool awaits_stop_ = false;  // another process was stopped and refuses the call
    int tag_ = 0;
    std::exception_ptr error_;   // written before `refused`
    std::map<int, Vote> votes_;  // by process
    std::shared_ptr<const SpanningGroup> group_;
    std::weak_ptr<threads::CollectiveCall> call_;
  };

  // Makes a call known when its first rank in this process is issued.
  void note_opened(const CallId& id, std::shared_ptr<const SpanningGroup> group,
                   const std::shared_ptr<threads::CollectiveCall>& call);
  // Votes for a call. The processes of the group say the same `order`.
  std::shared_ptr<const Ballot> vote(const CallId& id, const threads::CollectiveCall& call, CallOrder order,
                                     std::string values);
  // Takes the result of a decided ballot. Throws the error of a call that was refused, and RunStopped.
  AgreedCall take(const CallId& id);
  // Gives the turn to the next call of the order.
  void end_turn(const CallId& id, CallOrder order);
  // Gives up a call: refuses it or, where this process has voted for it, asks the others to refuse it.
  void give_up(const CallId& id, const threads::CollectiveCall& call, const std::exception_ptr& error);

  void handle(int from, MessageKind kind, ByteReader& bytes);
  // Refuses all calls that this process has not voted for, now and later.
  void stop();
  void begin_next_run();

  // Whether a call that has begun here needs a process.
  bool needs(int process);
  std::vector<OpenCall> open_calls();

 private:
  struct Group {
    std::int64_t first_open = 0;   // all earlier calls have ended here
    std::set<std::int64_t> ended;  // as have these
    std::int64_t places = 0;       // given out
    std::atomic<std::int64_t> turn{0};
  };
  using Break = std::pair<std::shared_ptr<threads::CollectiveCall>, std::exception_ptr>;

  bool has_ended(const CallId& id) const;
  void note_ended(const CallId& id);
  std::shared_ptr<Ballot> ballot_of(const CallId& id);
  void put_purpose(ByteWriter& bytes, int to, Name purpose);
  Ballot::Vote get_vote(int from, ByteReader& bytes);
  void handle_vote(int from, const CallId& id, Ballot& ballot, Ballot::Vote vote);
  void take_vote(int from, const CallId& id, Ballot& ballot, Ballot::Vote vote);
  void decide_if_complete(const CallId& id, Ballot& ballot);
  void go(const CallId& id, Ballot& ballot);  // as the group's leader
  void take_next_place(Group& group, Ballot& ballot, int tag);
  void give_places(const CallId& id, const std::vector<int>& processes);  // as rank 0
  void refuse(const CallId& id, Ballot& ballot, const std::optional<JobError>& error);
  void refuse_here(Ballot& ballot, const std::optional<JobError>& error);
  void say_refused(int to, const CallId& id, const std::optional<JobError>& error);
  void break_waiting();
  std::string text_of(const CallId& id, const threads::CollectiveCall& call, const Ballot& ballot) const;
  JobError plain(const CallId& id, const threads::CollectiveCall& call, const Ballot& ballot,
                 const std::exception_ptr& error) const;

  const int rank_;
  const std::vector<std::string> names_;
  const Post post_;
  std::mutex mutex_;  // guards the rest
  std::map<CallId, std::shared_ptr<Ballot>> ballots_;
  std::map<std::uint64_t, Group> groups_;
  std::vector<Break> breaks_;  // to be passed to calls of this process after unlocking
  // A purpose is sent to a process once, with a number; then the number alone.
  std::map<std::pair<int, Name>, std::uint32_t> sent_purposes_;   // by receiver
  std::map<std::pair<int, std::uint32_t>, Name> known_purposes_;  // by sender
  int tags_ = 0;
  std::atomic<std::int64_t> job_turn_{0};
  std::vector<std::int64_t> places_given_;  // in the order of each process, on rank 0
  bool is_stopped_ = false;
};

}  // namespace tandem::mpi
