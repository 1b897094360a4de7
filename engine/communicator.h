// Collectives between the devices of a group, as a vendor's library offers them (NCCL, MPI) or a model of it.
//
// One call covers all local devices of the group, like a ncclGroup: `streams[i]` and the tensors at [i] belong to
// local_devices()[i]. Calls are asynchronous, in stream order. Every worker of the group makes the same calls in the
// same order with equal sizes; otherwise the run ends with an error that names both sides, or who waits. Operands that
// do not fit the call throw UsageError.
//
// Threads: any task of its worker. Collective calls must not overlap, nor must sends or receives of one pair of
// devices: they are matched by their order.
#pragma once

#include <optional>
#include <span>

#include "engine/collective.h"
#include "engine/device.h"

namespace tandem {

class Communicator {
 public:
  using Tensors = std::span<const Tensor>;
  using Streams = std::span<Stream* const>;

  virtual ~Communicator() = default;
  virtual int size() const = 0;                                // devices of the whole group
  virtual std::span<Device* const> local_devices() const = 0;  // this worker's, in rank order
  virtual std::span<const int> local_ranks() const = 0;        // their ranks in the group

  // Sets the timeout of what this worker issues here from now on; empty, as at first, means none. A collective, send
  // or receive that is not complete `timeout_s` (greater than 0) of this world's clock after the first of its local
  // ranks was ready to execute it on its stream fails this worker with DeadlineExceededError, which surfaces like an
  // error of an op. Ranks of other workers that wait in the same call, or join it later, fail with it. Before the
  // deadline nobody who waits for the call counts as deadlocked.
  virtual void set_timeout(std::optional<double> timeout_s) = 0;
  // Says that each local device has a task of its own, which calls Stream::took_part_in_launch() for every collective.
  // Otherwise models of machines let the task that makes the call spend the launches of all local devices.
  virtual void set_launched_apart() {}
  // Says that what this worker gathers here from now on is moved by copy engines, as Transformer Engine's userbuffers
  // do (use_ce of its ring exchange) and NCCL without thread blocks (NCCL_CTA_POLICY_ZERO). All workers of the group
  // say the same. Models of machines then let other kernels have all multiprocessors; engines that compute use their
  // library.
  virtual void set_gathers_by_copy_engines() {}

  void all_reduce(Tensors buffers, Reduction reduction, Streams streams);             // in place
  void reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams);  // in place at root
  void broadcast(Tensors buffers, int root_rank, Streams streams);                    // in place
  // outputs[i] has size() times the elements of inputs[i], in rank order.
  void all_gather(Tensors outputs, Tensors inputs, Streams streams);
  // inputs[i] has size() times the elements of outputs[i].
  void reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams);
  // inputs[i] and outputs[i], which share no memory, have size() parts each: part j of rank i becomes part i of rank j.
  void all_to_all(Tensors outputs, Tensors inputs, Streams streams);
  // Point to point: the sender's worker calls send, the receiver's receive; pairs match in order.
  virtual void send(const Tensor& from, int to_rank, Stream& stream) = 0;
  virtual void receive(const Tensor& to, int from_rank, Stream& stream) = 0;

 private:
  // Issues this worker's part of a collective, whose operands fit. `spec` is complete.
  virtual void call(const CollectiveSpec& spec, Tensors outputs, Tensors inputs, Streams streams) = 0;
  void check_and_call(const CollectiveSpec& kind, Tensors outputs, Tensors inputs, Streams streams);
};

// Checks one end of a send or receive, for engines. Returns the rank of the stream's device. Throws UsageError.
int check_end(const Communicator& group, const Tensor& tensor, int peer_rank, const Stream& stream);

}  // namespace tandem
