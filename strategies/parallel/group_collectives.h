// A group's collectives as the tasks of its devices call them, each for its own device.
//
// A Communicator's call covers all local devices of a group at once. Here each device has a task of its own: it calls
// with its tensors and its stream, and the last of them to arrive makes the call for all. Every member makes the same
// calls in the same order. Calls return when the collective is issued, not when it is done.
#pragma once

#include <memory>
#include <vector>

#include "engine/worker.h"

namespace tandem {

class GroupCollectives {
 public:
  GroupCollectives(Worker& worker, Communicator& communicator);

  int size() const { return communicator_.size(); }
  // In place, sum. A group of one does nothing.
  void all_reduce(const Tensor& buffer, Stream& stream);
  // `output` has size() times the elements of `input`, in rank order.
  void all_gather(const Tensor& output, const Tensor& input, Stream& stream);
  // `input` has size() times the elements of `output`. Sum.
  void reduce_scatter(const Tensor& output, const Tensor& input, Stream& stream);

 private:
  enum class Operation : std::uint8_t { all_reduce, all_gather, reduce_scatter };
  void join(Operation operation, const Tensor& output, const Tensor& input, Stream& stream);
  void issue(Operation operation);

  Communicator& communicator_;
  std::unique_ptr<Monitor> monitor_;
  // Of the call that is being put together, by the order of the communicator's local devices.
  std::vector<Tensor> outputs_, inputs_;
  std::vector<Stream*> streams_;
  std::size_t arrived_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace tandem
