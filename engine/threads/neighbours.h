// The processes that a run is spread over, as the run in one of them sees the others. What ends the run is decided once
// for all of them.
//
// Threads: any.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/mailbox.h"
#include "engine/shared_tensor.h"
#include "engine/threads/remote_memory.h"
#include "engine/threads/run_control.h"

namespace tandem::threads {

class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // Whether the worker of this index is in this process.
  virtual bool is_here(int worker) const = 0;

  virtual RemoteMemory& memory() = 0;
  // See SharedState::tensor.
  virtual std::shared_ptr<SharedTensor> shared_tensor(std::string_view name, const std::function<Tensor()>& make) = 0;
  // See SharedState::mailbox.
  virtual std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) = 0;

  // Begins a run. Its control is stopped when the run ends in a failure, whoever caused it. Where the run goes on
  // without a process that was lost, `on_loss` is called for each of its workers.
  using OnLoss = std::function<void(int worker)>;
  virtual void begin(RunControl& control, OnLoss on_loss) = 0;
  // Ends the run of all processes. Only the first failure counts.
  virtual void fail(const std::exception_ptr& error) = 0;
  // Says that nothing here goes on by itself, and who waits for what ("": nobody); nothing takes that back.
  virtual void note_still(std::optional<std::string> waits) = 0;
  // Waits until what a program here has issued to devices of other processes has reached them. Called before its end.
  virtual void flush() = 0;
  // Waits until the programs of all processes have ended or wait for the end of the job, or the run is stopped. Until
  // then others may use the devices of this process.
  virtual void await_programs() = 0;
  // Says that the programs here that have waited for this go on.
  virtual void note_end_of_job() = 0;
  // Waits until every process has ended its part of the run; `error`, if any, is how this one has. Returns how the run
  // has ended: null, or the first failure of all processes.
  virtual std::exception_ptr end(const std::exception_ptr& error) = 0;
};

}  // namespace tandem::threads
