// Memory that measured ops take their operands from.
#pragma once

#include "engine/worker.h"

namespace tandem::calibration {

// Operands rotate through a block, so that a measured op finds them where a training step's op would: in a shared
// cache rather than in the innermost one. Its values are random from -1 to 1, since the power that a device draws, and
// so its clock, depends on them.
class Pool {
 public:
  // At least `bytes`. The filling goes to the compute stream.
  Pool(Worker& worker, Device& device, DType dtype, std::int64_t bytes);

  Tensor take(std::int64_t count);  // the next elements, wrapping around
  Tensor take_matrix(std::int64_t rows, std::int64_t columns) { return take(rows * columns).reshape({rows, columns}); }

 private:
  Tensor block_;
  std::int64_t next_ = 0;
};

// One on each compute device.
std::vector<Pool> pools_of(Worker& worker, DType dtype, std::int64_t bytes);

}  // namespace tandem::calibration
