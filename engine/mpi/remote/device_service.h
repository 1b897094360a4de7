// Issues to the devices of this process what other processes send for them: see remote_protocol.h.
//
// An update of a shared tensor is several ops, which its process sends while it has the tensor's lock. Where the job
// goes on without lost processes, they are held back until the lock is given back, so that no update is half applied.
// Ops under several locks of a task are held back in one list, of the first of these locks, and issued when any of them
// is given back. An event that is recorded meanwhile ends this, because the process may wait for it before it gives the
// lock back; so does a wait for all of a device, for everything that the process has issued.
//
// Threads: handle() is called by one thread at a time for each sender.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/mpi/remote/remote_access.h"

namespace tandem::mpi {

class DeviceService {
 public:
  explicit DeviceService(RemoteAccess& access) : access_(access) {}
  void handle(int from, RemoteKind kind, ByteReader& bytes);
  void end();
  // Issues what was held back for this lock of another process; 0: none.
  void apply(int from, std::uint64_t lock);
  // Drops what was held back for a lost process. Streams wait no longer for its events.
  void lose(int process);

 private:
  class Gate;
  using Name = std::pair<int, std::uint64_t>;  // of an event or a lock: the process, and its number
  struct Place {
    Name lock;  // 0: none
    int step = 0;
  };

  void apply_all(int from);
  void allocate(int from, ByteReader& bytes);
  void memory_use(int from, ByteReader& bytes);
  void synchronize(int from, ByteReader& bytes);
  void issue(int from, RemoteKind kind, ByteReader& bytes);
  void launch(cpu::CpuStream& stream, const Place& place, ByteReader& bytes);
  void copy(cpu::CpuStream& stream, const Place& place, ByteReader& bytes);
  void issue_or_hold(const Place& place, const std::function<void()>& work);
  void record(int from, cpu::CpuStream& stream, std::uint64_t number);
  void wait_here(int from, cpu::CpuStream& stream, std::uint64_t number);
  void wait_gate(int from, cpu::CpuStream& stream, std::uint64_t number);
  void open_gate(int from, std::uint64_t number);

  RemoteAccess& access_;
  std::mutex mutex_;                // guards the rest
  std::map<Name, Event> recorded_;  // not complete yet
  std::map<Name, std::shared_ptr<Gate>> gates_;
  std::map<Name, std::vector<std::function<void()>>> held_back_;  // by lock
};

}  // namespace tandem::mpi
