// What two neighbouring stages of a pipeline hand to each other where both are on one device.
//
// Threads: the task of the device.
#pragma once

#include <deque>
#include <vector>

#include "engine/device.h"

namespace tandem {

// Matrices on their way in one direction, each in memory of its own until it is released.
class HandedMatrices {
 public:
  explicit HandedMatrices(Device& device) : device_(device) {}

  // Copies a matrix, on the compute stream.
  void put(const Tensor& matrix);
  // Returns the oldest matrix that was put and not taken, for work that is issued to the compute stream from now on.
  Tensor take();
  // Allows the oldest matrix that was taken to be overwritten after the work that the compute stream holds now.
  void release();

 private:
  struct Matrix {
    Tensor memory{}, value{};
  };
  Device& device_;
  std::deque<Matrix> put_, taken_;
  std::vector<Tensor> free_;
};

struct StageJoint {
  explicit StageJoint(Device& device) : outputs(device), gradients(device) {}

  HandedMatrices outputs;    // to the later stage
  HandedMatrices gradients;  // back, of these outputs
};

}  // namespace tandem
