// What the processes of a run tell each other, apart from the values of their larger collectives.
//
// When all devices of a process have reached a call that spans processes, the process votes for it: it tells every
// other process of the call's group. The call takes place once all of them have voted for it, and fails if one refuses
// it, with an error. A process votes once, for or against, and every process receives every vote. So a call takes place
// everywhere or nowhere, and no process has to ask. A process that gives up a call refuses it if it has not voted yet.
// If it has voted and misses a deadline, it asks the processes whose votes are missing to refuse; one that has voted
// meanwhile ignores this, and its vote counts. In a run that was stopped, every process refuses the calls that it has
// not voted for, so that all who wait learn of it.
//
// Small values travel with the votes, and nothing else is needed. Larger calls are executed by MPI: the first process
// of the group says `go` to the others, and all of them execute the group's calls in the order of these messages.
//
// Calls of GPUs are executed by what drives the GPUs. The work of a call waits on each GPU for the other ones, and a
// GPU has room for one such call, so two groups that have GPUs in common would wait for each other for ever if a
// process executed their calls in another order than another one. Rank 0 gives each call a place in the order of every
// process of its group, all together: any two processes execute the calls that they have in common in one order.
//
// Rank 0 has a coordinator, which decides how a run ends. The processes tell it what they wait for, and report
// failures.
//
//   to the coordinator                               | from the coordinator
//   fail    the run has failed here                  | stop    the run has failed, and how; programs are stopped
//   still   nothing here goes on by itself, or does  | finish  all processes are idle
//   idle    the programs here have ended, or wait    | end     every process is done; the next run may begin
//           for the end of the job                   |
//   done    all devices here have ended              |
//   leave   no further runs here                     | lost    a rank does not answer: the job ends
//   signal  this process was sent one: the job ends  |
//   alive   (both ways, once a second)
//   gone    (both ways) a rank was lost, and the job goes on without it
//
// A process learns of a lost rank from its connection or from rank 0, after all that the rank has sent it. It then
// drops what the rank has begun here (remote_access.h). What processes report as still counts once they know of as many
// losses as rank 0, because a process that has just lost another one goes on.
//
//   among processes, each with the number of the run
//   vote    for a call, with its values if they are small
//   refuse  against a call, with the error
//   ask     to refuse a call
//   go      a call is the next that the group executes by MPI
//   order   (to rank 0) a call of GPUs takes place and needs its places
//   place   (from rank 0) the place of a call among all that the process's GPUs execute
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/mpi/messages/job_error.h"

namespace tandem::mpi {

enum class MessageKind : std::uint8_t {
  fail,
  still,
  idle,
  done,
  leave,
  signal,
  alive,
  gone,
  stop,
  finish,
  end,
  lost,
  vote,  // this and what follows: among processes
  refuse,
  ask,
  go,
  order,
  place,
  remote  // see remote_protocol.h
};
inline bool is_among_processes(MessageKind kind) {
  return kind >= MessageKind::vote;
}

// The number-th call of a group; `group` is a hash of its devices.
struct CallId {
  std::uint64_t group = 0;
  std::int64_t number = 0;

  auto operator<=>(const CallId&) const = default;
  // A positive number, larger than any that a process gives to its own calls.
  std::int64_t record_sequence() const;
};
inline bool spans_processes(std::int64_t record_sequence) {
  return record_sequence >= std::int64_t{1} << 62;
}

// What a process knows about a call that is not complete.
struct OpenCall {
  CallId id;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string purpose{};             // engine/purpose.h
  std::vector<std::string> devices;  // by rank of the group
  std::vector<int> arrived;          // ranks of the group
};

inline void put_call(ByteWriter& bytes, const OpenCall& call) {
  bytes.put(call.id).put(call.kind).put_text(call.purpose).put(static_cast<std::uint64_t>(call.devices.size()));
  for (const std::string& device : call.devices) bytes.put_text(device);
  bytes.put_list(call.arrived);
}
inline OpenCall get_call(ByteReader& bytes) {
  OpenCall call;
  call.id = bytes.get<CallId>();
  call.kind = bytes.get<CollectiveKind>();
  call.purpose = bytes.get_text();
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) call.devices.push_back(bytes.get_text());
  call.arrived = bytes.get_list<int>();
  return call;
}

// Reports whether a process is still: every thread waits for something or has nothing to do, and no values are on their
// way. The numbers count the messages among processes, by the other process, so that the coordinator can tell whether
// one is on its way.
struct Stillness {
  bool is_still = false;
  bool is_after_end_of_job = false;  // the programs here that have waited for the end of the job go on
  std::string waits{};               // who waits for what; "": nobody does
  int losses = 0;                    // of ranks, that the process knows of
  std::vector<std::int64_t> sent{}, received{};
  std::vector<OpenCall> open{};
};

void put_stillness(ByteWriter& bytes, const Stillness& stillness);
Stillness get_stillness(ByteReader& bytes);

}  // namespace tandem::mpi
