// What the processes of a run tell each other beside the values of their larger collectives.
//
// A process whose devices have all reached a call that spans processes votes for it: it tells every other process of
// the call's group. The call takes place when all of them have voted for it, and fails where one has refused it, for
// which it gives an error. A process votes once, for or against, and everybody hears every vote; so a call takes place
// everywhere or nowhere, and nobody has to be asked. Who gives up a call that it has not voted for refuses it. Who has
// voted, and misses a deadline, asks those whose votes are missing to refuse: of a vote and a question that cross, the
// vote counts. In a run that was stopped everybody refuses what it has not voted for, so that all who wait hear of it.
//
// Small values travel with the votes, and nothing else is needed. A larger call is executed by MPI: its group's first
// process says `go` to the others, in one order, in which each of them executes the calls of that group.
//
// Rank 0 has a coordinator, which decides how a run ends. It is told of what each process waits for, and of failures.
//
//   to the coordinator                               | from the coordinator
//   fail    the run has failed here                  | stop    the run has failed, and how; programs are stopped
//   still   nothing here goes on by itself, or does  | finish  the programs of all processes have ended
//   idle    the programs here have ended             | end     every process is done; the next run may begin
//   done    all devices here have ended              |
//   leave   no further runs here                     |
//   alive   (both ways, once a second)
//
//   among processes, each with the number of the run
//   vote    for a call, with its values if they are small
//   refuse  against a call, with the error
//   ask     to refuse a call
//   go      a call is the next that the group executes by MPI
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/mpi/job_error.h"

namespace tandem::mpi {

enum class MessageKind : std::uint8_t {
  fail,
  still,
  idle,
  done,
  leave,
  alive,
  stop,
  finish,
  end,
  vote,  // this and what follows: among processes
  refuse,
  ask,
  go,
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
  // Positive, and beyond what a process counts by itself.
  std::int64_t record_sequence() const;
};
inline bool spans_processes(std::int64_t record_sequence) {
  return record_sequence >= std::int64_t{1} << 62;
}

// What a process knows of a call that is not complete.
struct OpenCall {
  CallId id;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<std::string> devices;  // by rank of the group
  std::vector<int> arrived;          // ranks of the group
};

inline void put_call(ByteWriter& bytes, const OpenCall& call) {
  bytes.put(call.id).put(call.kind).put(static_cast<std::uint64_t>(call.devices.size()));
  for (const std::string& device : call.devices) bytes.put_text(device);
  bytes.put_list(call.arrived);
}
inline OpenCall get_call(ByteReader& bytes) {
  OpenCall call;
  call.id = bytes.get<CallId>();
  call.kind = bytes.get<CollectiveKind>();
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) call.devices.push_back(bytes.get_text());
  call.arrived = bytes.get_list<int>();
  return call;
}

// That nothing in a process goes on by itself: every thread waits for something or has nothing to do, and no values are
// on their way. The numbers count the messages among processes, by the other process, so that the coordinator can tell
// whether one is on its way.
struct Stillness {
  bool is_still = false;
  std::string waits{};  // who waits for what; "": nobody does
  std::vector<std::int64_t> sent{}, received{};
  std::vector<OpenCall> open{};
};

void put_stillness(ByteWriter& bytes, const Stillness& stillness);
Stillness get_stillness(ByteReader& bytes);

}  // namespace tandem::mpi
