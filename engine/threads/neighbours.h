// The processes that a run is spread over, as the run in one of them sees the others. What ends the run is decided once
// for all of them.
//
// Threads: any.
#pragma once

#include <exception>
#include <string>

#include "engine/threads/run_control.h"

namespace tandem::threads {

class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // Whether the worker of this index is in this process.
  virtual bool is_here(int worker) const = 0;

  // Begins a run. Its control is stopped when the run ends in a failure, whoever caused it.
  virtual void begin(RunControl& control) = 0;
  // Ends the run of all processes. Only the first failure counts.
  virtual void fail(const std::exception_ptr& error) = 0;
  // Says that nothing here can go on by itself, and who waits for what; "" takes that back.
  virtual void note_stuck(std::string waits) = 0;
  // Waits until every process has ended its part of the run; `error`, if any, is how this one has. Returns how the run
  // has ended: null, or the first failure of all processes.
  virtual std::exception_ptr end(const std::exception_ptr& error) = 0;
};

}  // namespace tandem::threads
