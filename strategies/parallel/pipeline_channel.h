// One direction of what a pipeline stage exchanges with a neighbour: matrices [rows, features] (f32), one for each
// micro-batch in turn, on a stream of their own. Used by the task of the stage's device.
#pragma once

#include <vector>

#include "engine/worker.h"

namespace tandem {

// Which neighbour, over what, and for how much.
struct ChannelSpec {
  Communicator* communicator = nullptr;
  int peer = 0;                         // its rank
  int stream = 0;                       // of this device
  std::int64_t rows = 0, features = 0;  // of the largest matrix
  int buffers = 2;                      // matrices that may be in use or under way
};

class Receiver {
 public:
  Receiver(Device& device, ChannelSpec spec);
  // The next matrix, for work that is issued to the compute stream from now on.
  Tensor receive(std::int64_t rows);
  // The oldest matrix that is not released yet may be overwritten after what the compute stream holds now.
  void release();

 private:
  struct Buffer {
    Tensor memory{};
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
  // Room for the next matrix, for work that is issued to the compute stream from now on.
  Tensor next(std::int64_t rows);
  // Sends what next() gave, after what the compute stream holds now.
  void send();

 private:
  struct Buffer {
    Tensor memory{};
    Event sent{};
  };
  Device& device_;
  ChannelSpec spec_;
  std::vector<Buffer> buffers_;
  Tensor current_{};
  std::size_t sent_ = 0;
};

}  // namespace tandem
