// Memory from which measured ops take their operands.
#pragma once

#include "engine/worker.h"

namespace tandem::calibration {

// A block of memory through which operands rotate, so that a measured op finds them where an op of a training step
// would: in a shared cache rather than in the innermost one. Small operands rotate through its first part only, since
// the whole block would not fit into any cache. Its values are random between -1 and 1, since values influence the
// power that a device draws, and thus its clock.
class Pool {
 public:
  // Allocates at least `bytes` and fills them on the compute stream. Small operands rotate through the first
  // `small_bytes`, or through all of it if that is 0.
  Pool(Worker& worker, Device& device, DType dtype, std::int64_t bytes, std::int64_t small_bytes = 0);

  // The next elements, wrapping around, aligned as tensors are: at other places kernels load element by element.
  Tensor take(std::int64_t count);
  std::int64_t aligned(std::int64_t count) const;  // elements until the next place that is aligned, at least `count`
  // Brings everything that small operands of `count` elements rotate through into the cache that holds it, if any does,
  // by an op on the compute stream. Larger operands would push it out again, and are left where they are.
  void touch(std::int64_t count) const;
  Tensor take_matrix(std::int64_t rows, std::int64_t columns) { return take(rows * columns).reshape({rows, columns}); }

 private:
  std::int64_t reach(std::int64_t count) const;  // the elements through which operands of this size rotate

  Tensor block_;
  std::int64_t small_ = 0;  // elements
  std::int64_t next_ = 0;
};

// Launches work that is not measured: its records are ignored.
void launch_unmeasured(Stream& stream, Op op);

// Makes a pool on each compute device.
std::vector<Pool> pools_of(Worker& worker, DType dtype, std::int64_t bytes, std::int64_t small_bytes = 0);

}  // namespace tandem::calibration
