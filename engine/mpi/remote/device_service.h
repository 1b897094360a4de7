// Issues to the devices of this process what other processes send for them: see remote_protocol.h.
//
// Threads: handle() is called by one thread at a time for each sender.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/mpi/remote/remote_access.h"

namespace tandem::mpi {

class DeviceService {
 public:
  explicit DeviceService(RemoteAccess& access) : access_(access) {}
  void handle(int from, RemoteKind kind, ByteReader& bytes);
  void end();

 private:
  class Gate;
  using Name = std::pair<int, std::uint64_t>;  // of an event: the process that has named it, and its number

  void allocate(int from, ByteReader& bytes);
  void memory_use(int from, ByteReader& bytes);
  void synchronize(int from, ByteReader& bytes);
  void issue(int from, RemoteKind kind, ByteReader& bytes);
  void launch(cpu::CpuStream& stream, ByteReader& bytes);
  void copy(int from, cpu::CpuStream& stream, ByteReader& bytes);
  void record(int from, cpu::CpuStream& stream, std::uint64_t number);
  void wait_here(int from, cpu::CpuStream& stream, std::uint64_t number);
  void wait_gate(int from, cpu::CpuStream& stream, std::uint64_t number);
  void open_gate(int from, std::uint64_t number);

  RemoteAccess& access_;
  std::mutex mutex_;                // guards the rest
  std::map<Name, Event> recorded_;  // not complete yet
  std::map<Name, std::shared_ptr<Gate>> gates_;
};

}  // namespace tandem::mpi
