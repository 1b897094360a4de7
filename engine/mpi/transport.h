// What the mpi engine needs of MPI, without its header. The implementation is a library of its own (mpi_transport.cc),
// opened when the first run asks for it: the program itself depends on no MPI.
//
// Threads: any, except where said otherwise. Failures end the job, as MPI's own do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/collective.h"

namespace tandem::mpi {

struct Message {
  int from = 0;
  std::string text;  // bytes
};

// Ranks that call collectives together.
struct Channel {
  std::span<const int> ranks;  // ascending
  // Tells groups of the same ranks apart: those of different groups go on beside each other. 0 with all ranks is the
  // channel of gather().
  std::uint64_t group = 0;
  int tag = 0;  // equal on all ranks, and in use for nothing else between them
};

// A message that is on its way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool is_done() = 0;  // one thread at a time calls it
};
// Keeps apart the tags that the receivers of messages have chosen and those that the senders have.
enum class Lane : std::uint8_t { got, put };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string library() const = 0;  // "Open MPI v4.1.4"
  virtual std::string host() const = 0;

  // Messages between two ranks arrive in order. post() does not wait for the receiver. poll() returns false when there
  // is none; one thread at a time calls it.
  virtual void post(int to, std::string text) = 0;
  virtual bool poll(Message& message) = 0;

  // Every rank's bytes, by rank. All ranks call it, one thread each, while no collective is under way.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;

  // Blocking. All ranks of a channel call these in one order, one thread of each at a time; `root` is a place among
  // them.
  virtual void all_reduce(const Channel& channel, void* data, std::int64_t count, DType dtype, Reduction reduction) = 0;
  // In place at the root.
  virtual void reduce(const Channel& channel, int root, void* data, std::int64_t count, DType dtype,
                      Reduction reduction) = 0;
  virtual void broadcast(const Channel& channel, int root, void* data, std::int64_t bytes) = 0;
  // A rank contributes parts[its place] parts of so many bytes; `to` has those of all, by place.
  virtual void all_gather(const Channel& channel, const void* from, void* to, std::int64_t part_bytes,
                          std::span<const int> parts) = 0;
  // `from` has counts[place] elements for each place; `to` gets the sum of one's own.
  virtual void reduce_scatter(const Channel& channel, const void* from, void* to, std::span<const int> counts,
                              DType dtype, Reduction reduction) = 0;
  // Place p gets send_parts[p] parts and sends receive_parts[p].
  virtual void all_to_all(const Channel& channel, const void* from, std::span<const int> send_parts, void* to,
                          std::span<const int> receive_parts, std::int64_t part_bytes) = 0;
  // One at a time for each tag between two ranks.
  virtual void send(int to, int tag, const void* data, std::int64_t bytes) = 0;
  virtual void receive(int from, int tag, void* data, std::int64_t bytes) = 0;

  // Begin a message; the memory stays as it is until it is done. One at a time for each lane and tag between two ranks.
  virtual std::unique_ptr<Transfer> begin_send(int to, Lane lane, int tag, const void* data, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Transfer> begin_receive(int from, Lane lane, int tag, void* data, std::int64_t bytes) = 0;

  // Ends every process of the job.
  [[noreturn]] virtual void abort(int exit_code) = 0;
  // Leaves MPI; waits until all ranks do. Nothing else may be called afterwards.
  virtual void finalize() = 0;
};

// Tags from here on, to 32 767, are the transport's users'.
inline constexpr int kFirstFreeTag = 16;

// What the library exports, under this name. Returns null, and why in `reason`, where MPI cannot be used.
using OpenTransport = Transport*(std::string& reason);
// The exit code of a job that a failure ends at once (docs/exit-codes.md).
inline constexpr int kRunFailed = 5;

inline constexpr char kOpenTransport[] = "tandem_open_mpi_transport";

}  // namespace tandem::mpi
