// What the workers of a run share by name, in however many processes they are.
//
// Threads: any task of the worker.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "engine/shared_tensor.h"

namespace tandem {

class Mailbox;

class SharedState {
 public:
  using Factory = std::function<std::shared_ptr<void>()>;
  using TensorFactory = std::function<Tensor()>;

  // Returns an object that all workers of the run share. The first task that asks for `name` calls `make`, which may
  // block like any other code of a task; others that ask for the same name wait meanwhile. When `make` throws, the
  // exception is the asker's, and the next task that asks makes the object. It lives to the end of the run. Throws
  // UnavailableError unless Capabilities::shared_objects.
  virtual std::shared_ptr<void> object(std::string_view name, const Factory& make) = 0;
  // The same for an object that is this worker's alone, on every engine.
  virtual std::shared_ptr<void> kept(std::string_view name, const Factory& make) = 0;
  // The same for a tensor, on any device that this worker reaches, wherever Capabilities::remote_devices.
  virtual std::shared_ptr<SharedTensor> tensor(std::string_view name, const TensorFactory& make) = 0;
  // Returns the mailbox of this name of a worker, on every engine: anybody sends to it, its owner receives from it.
  // UsageError for an owner that does not exist.
  virtual std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) = 0;

 protected:
  ~SharedState() = default;
};

}  // namespace tandem
