// The collectives of a group, for programs in which each device has a task of its own.
//
// One call of a Communicator covers all local devices of a group. Here each device's task calls for its own device,
// with its tensors and its stream, and the last task to arrive makes the call for all. Every member makes the same
// calls in the same order. A call returns when the collective has been issued, not when it is done.
#pragma once

#include <memory>
#include <vector>

#include "engine/worker.h"

namespace tandem {

class GroupCollectives {
 public:
  GroupCollectives(Worker& worker, Communicator& communicator);

  int size() const { return communicator_.size(); }
  Communicator& communicator() const { return communicator_; }
  int rank_of(const Device& device) const;  // in the group, of a device of this worker

  // Reduces in place. Does nothing in a group of one.
  void all_reduce(const Tensor& buffer, Stream& stream, Reduction reduction = Reduction::sum);
  // Concatenates the inputs in rank order: `output` has size() times the elements of `input`.
  void all_gather(const Tensor& output, const Tensor& input, Stream& stream);
  // Part j of rank i's input becomes part i of rank j's output. Both have the same number of elements, a multiple of
  // size(), and do not overlap.
  void all_to_all(const Tensor& output, const Tensor& input, Stream& stream);
  // Sums the inputs and gives each rank its part: `input` has size() times the elements of `output`.
  void reduce_scatter(const Tensor& output, const Tensor& input, Stream& stream);

  // Makes the collective of this kind, on sums, with the rank `root` where it has one; tensors as above. Those of a
  // reduction to one rank and of a broadcast are `output`.
  void collective(CollectiveKind kind, int root, const Tensor& output, const Tensor& input, Stream& stream);

 private:
  struct Call {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Reduction reduction = Reduction::sum;
    int root = 0;
  };
  std::size_t slot_of(const Device& device) const;
  void join(const Call& call, const Tensor& output, const Tensor& input, Stream& stream);
  void issue(const Call& call);

  Communicator& communicator_;
  std::unique_ptr<Monitor> monitor_;  // guards the rest
  // The call that is being put together, in the order of the communicator's local devices.
  std::vector<Tensor> outputs_, inputs_;
  std::vector<Stream*> streams_;
  std::size_t arrived_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace tandem
