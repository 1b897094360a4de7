// Tracks who still uses a value that was read from a variable's component.
//
// A read hands out the component's own memory with a lease on it (Tensor::leased). A write asks are_held() first and,
// while a lease is alive, goes to new memory. So a read is a snapshot, and costs nothing where nobody writes.
//
// Threads: one component is read and written by one task at a time; leases may end in any thread.
#pragma once

#include <memory>

#include "engine/tensor.h"

namespace tandem {

class Snapshots {
 public:
  Snapshots();
  // Returns a handle to the component's memory that counts as a reader until its last copy is gone.
  Tensor take(const Tensor& component) const;
  bool are_held() const;

 private:
  struct Readers;
  class Lease;
  std::shared_ptr<Readers> readers_;
};

}  // namespace tandem
