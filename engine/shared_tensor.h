// A tensor that workers share under a name, wherever its memory is and however many processes they run in.
//
// Threads: any task; between lock() and unlock(), one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/task.h"
#include "engine/tensor.h"

namespace tandem {

class SharedTensor {
 public:
  virtual ~SharedTensor() = default;
  virtual const Tensor& tensor() const = 0;

  // BasicLockable: use std::lock_guard<SharedTensor>. What is issued to the tensor's device under one lock comes before
  // what is issued under the next, whichever workers issue it. lock() blocks the calling task.
  virtual void lock() = 0;
  virtual void unlock() = 0;

  // How often note_change() has been called, by all workers together. Both are called with the lock held.
  virtual std::int64_t version() const = 0;
  virtual void note_change() = 0;
};

// Makes one whose users are all in one process; the monitor is its lock.
std::shared_ptr<SharedTensor> make_shared_tensor(Tensor tensor, std::unique_ptr<Monitor> monitor);

}  // namespace tandem
