// What the processes of a run tell each other beside the values of their collectives.
//
// Rank 0 has a coordinator. A process whose devices have all reached a call that spans processes says `arrive`; when
// all processes of the group have, the coordinator says `go` to each, and they execute it by MPI. The coordinator says
// `go` in one order to all, in which every process executes its calls, one at a time: so MPI always finds all ranks of
// a call inside it, and no call waits for another in a circle. Whatever ends a run is decided by the coordinator, too:
// it reaches every process after the `go`s before it, so that all complete the calls that have begun.
//
//   to the coordinator                              | from the coordinator
//   group   the devices of a group, before its use  | go      the call begins
//   arrive  ready for a call                        | broken  the call fails here and everywhere
//   break   a deadline was missed: break a call off | stop    the run has failed; programs are stopped
//   fail    the run has failed here                 | end     every process is done; the next run may begin
//   stuck   nothing here goes on by itself, or does |
//   done    programs and devices here have ended    |
//   leave   no further runs here                    |
//   alive   (both ways, once a second)
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/mpi/job_error.h"

namespace tandem::mpi {

enum class MessageKind : std::uint8_t {
  group,
  arrive,
  break_off,
  fail,
  stuck,
  done,
  leave,
  alive,
  go,
  broken,
  stop,
  end
};

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
  std::vector<int> arrived;  // ranks of the group
};

inline void put_call(ByteWriter& bytes, const OpenCall& call) {
  bytes.put(call.id).put(call.kind).put_list(call.arrived);
}
inline OpenCall get_call(ByteReader& bytes) {
  OpenCall call;
  call.id = bytes.get<CallId>();
  call.kind = bytes.get<CollectiveKind>();
  call.arrived = bytes.get_list<int>();
  return call;
}

}  // namespace tandem::mpi
