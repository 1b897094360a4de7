// What the mpi engine needs from MPI, without MPI's header. That implementation is a separate library
// (mpi_transport.cc), which is opened when it is first needed, so the program itself depends on no MPI. Another one
// (tcp_transport.h) is for tasks that no launcher has started.
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
  std::string text;         // bytes
  bool tells_loss = false;  // of this rank; nothing more comes from it
};

// Ranks that call collectives together.
struct Channel {
  std::span<const int> ranks;  // ascending
  // Tells groups of the same ranks apart, whose calls may overlap. 0 with all ranks is the channel of gather().
  std::uint64_t group = 0;
  int tag = 0;  // equal on all ranks, and in use for nothing else between them
};

// A message that is on its way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool is_done() = 0;  // one thread at a time calls it
  // Whether it is done because the other rank was lost: its memory may have some of the values.
  virtual bool has_failed() const { return false; }
};
// The end of a message that chooses its tag. Equal tags of different choosers do not collide.
enum class TagChooser : std::uint8_t { receiver, sender };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string library() const = 0;  // "Open MPI v4.1.4"

  // Messages between two ranks arrive in order. post() does not wait for the receiver. poll() returns false when there
  // is none; one thread at a time calls it.
  virtual void post(int to, std::string text) = 0;
  virtual bool poll(Message& message) = 0;

  // Returns every rank's bytes, by rank. All ranks call it, one thread each, while no collective is under way.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;

  // These block. All ranks of a channel call them in one order, one thread of each rank at a time; `root` is a place
  // among the ranks.
  virtual void all_reduce(const Channel& channel, void* data, std::int64_t count, DType dtype, Reduction reduction) = 0;
  // Works in place at the root.
  virtual void reduce(const Channel& channel, int root, void* data, std::int64_t count, DType dtype,
                      Reduction reduction) = 0;
  virtual void broadcast(const Channel& channel, int root, void* data, std::int64_t bytes) = 0;
  // A rank contributes parts[its place] parts of `part_bytes` each; `to` gets the parts of all, by place.
  virtual void all_gather(const Channel& channel, const void* from, void* to, std::int64_t part_bytes,
                          std::span<const int> parts) = 0;
  // `from` has counts[place] elements for each place; `to` gets the reduction of those for this rank's place.
  virtual void reduce_scatter(const Channel& channel, const void* from, void* to, std::span<const int> counts,
                              DType dtype, Reduction reduction) = 0;
  // Place p gets send_parts[p] parts and sends receive_parts[p].
  virtual void all_to_all(const Channel& channel, const void* from, std::span<const int> send_parts, void* to,
                          std::span<const int> receive_parts, std::int64_t part_bytes) = 0;
  // These block, too: one message at a time for each tag between two ranks.
  virtual void send(int to, int tag, const void* data, std::int64_t bytes) = 0;
  virtual void receive(int from, int tag, void* data, std::int64_t bytes) = 0;

  // Begin a message, whose memory must not change until it is done. Between two ranks, one message at a time for each
  // chooser and tag.
  virtual std::unique_ptr<Transfer> begin_send(int to, TagChooser chooser, int tag, const void* data,
                                               std::int64_t bytes) = 0;
  virtual std::unique_ptr<Transfer> begin_receive(int from, TagChooser chooser, int tag, void* data,
                                                  std::int64_t bytes) = 0;

  // Whether a job can go on without a rank that has ended. Where it can, it does for the ranks of set_expendable(); the
  // loss of any other ends the job. What is sent to a lost rank is dropped, and whoever waits for something of it waits
  // no longer: gather() returns "" for it, a transfer has failed. In a collective that has begun, the loss of a rank
  // ends the job.
  virtual bool can_lose_ranks() const { return false; }
  virtual void set_expendable(const std::vector<bool>& /*ranks*/) {}  // by rank; at first none
  virtual bool is_lost(int /*rank*/) const { return false; }
  // Gives up an expendable rank that no longer answers: it is lost now.
  virtual void drop(int /*rank*/) {}

  // Ends every process of the job. Where no launcher ends them, each says `reason`, as the caller has said already.
  [[noreturn]] virtual void abort(int exit_code, const std::string& reason) = 0;
  // Leaves the job, and waits until all ranks do. Nothing else may be called afterwards.
  virtual void finalize() = 0;
};

// The first of the tags, up to 32 767, that are free for users of the transport.
inline constexpr int kFirstFreeTag = 16;

// The function that the library exports as kOpenTransport. Returns null, with the cause in `reason`, where MPI cannot
// be used.
using OpenTransport = Transport*(std::string& reason);
// The exit codes of a job that a failure or a signal ends immediately (docs/exit-codes.md).
inline constexpr int kRunFailed = 5;
inline constexpr int kInterrupted = 130;

inline constexpr char kOpenTransport[] = "tandem_open_mpi_transport";

// The function that the library exports as kDescribeMpi: what Transport::library() returns, before MPI begins.
using DescribeMpi = void(std::string& library);
inline constexpr char kDescribeMpi[] = "tandem_describe_mpi";

}  // namespace tandem::mpi
