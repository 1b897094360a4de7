// One direction of the exchange between a pipeline stage and its neighbour: matrices [rows, features], one for each
// micro-batch in turn, on a stream of their own.
//
// Threads: the task of the stage's device.
#pragma once

#include <vector>

#include "engine/worker.h"
#include "strategies/parallel/layout/group_collectives.h"

namespace tandem {

// The neighbour, the way to it, and the size of the matrices.
struct ChannelSpec {
  Communicator* communicator = nullptr;
  int peer = 0;                         // the neighbour's rank
  int stream = 0;                       // this device's stream for it
  std::int64_t rows = 0, features = 0;  // the largest matrix
  int buffers = 2;                      // how many matrices may be in use or on their way
  DType dtype = DType::f32;
  // The tensor-parallel devices that all have the same matrices. If a matrix can be divided equally, each of them moves
  // one part of it, and the receivers gather the parts. Null: this device moves whole matrices.
  GroupCollectives* sharers = nullptr;
  int part = 0;  // of this device

  std::int64_t elements(std::int64_t of_rows) const { return of_rows * features; }
  // The number of parts into which a matrix of `of_rows` rows is divided.
  int parts(std::int64_t of_rows) const {
    return sharers != nullptr && elements(of_rows) % sharers->size() == 0 ? sharers->size() : 1;
  }
};

class Receiver {
 public:
  Receiver(Device& device, ChannelSpec spec);
  // Returns the next matrix, for work that is issued to the compute stream from now on.
  Tensor receive(std::int64_t rows);
  // Allows the oldest matrix in use to be overwritten after the work that the compute stream holds now.
  void release();

 private:
  struct Buffer {
    Tensor memory{};
    Tensor part{};  // null where nobody shares the matrices
    Event released{};
  };
  Device& device_;
  ChannelSpec spec_;
  std::vector<Buffer> buffers_;
  std::size_t received_ = 0, released_ = 0;
};

class Sender {
 public:
  Sender(Device& device, ChannelSpec spec);
  // Lets the compute stream wait until at most one matrix less than there are buffers is on its way.
  void wait_for_room();
  // Sends a matrix, after the work that the compute stream holds now; an empty one: memory of the sender's own. The
  // matrix stays as it is until the stream of the channel has sent it.
  void send(const Tensor& matrix, std::int64_t rows);

 private:
  struct Buffer {
    Tensor memory{};
    Event sent{};
  };
  Device& device_;
  ChannelSpec spec_;
  std::vector<Buffer> buffers_;
  std::size_t sent_ = 0;
};

}  // namespace tandem
