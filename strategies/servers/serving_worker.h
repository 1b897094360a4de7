// What a ClusterCoordinator and the workers that serve functions (worker_functions.h) say to each other.
//
// A coordinator sends an order to a worker's mailbox: `call`, with where the result goes, the function's name and the
// arguments, or `end`. Back comes whether the function has failed, how stale the worker's updates were, and the result
// or the error; and after an `end` that follows calls, an empty message when all that the functions have issued is
// done. Until then the coordinator's program does not end, and nothing that functions use goes away. A worker sends
// itself `end_of_job`.
//
// Threads: any task.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/mailbox.h"
#include "strategies/servers/parameter_server_v2.h"

namespace tandem {

enum class Order : std::uint8_t { call, end, end_of_job };

// Returns the mailbox of a worker, by its index in the run, that orders come to.
std::shared_ptr<Mailbox> orders_of(Worker& user, int worker);

// Answers an `end` whose bytes have been read up to here.
void acknowledge_end(Worker& user, ByteReader& order);
WorkerMessage end_of_job();

// Takes the tensors of a message one after the other.
class TensorsOf {
 public:
  explicit TensorsOf(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  Tensor next() { return std::exchange(tensors_.at(next_++), {}); }

 private:
  std::vector<Tensor> tensors_;
  std::size_t next_ = 0;
};

// Appends an error; and throws one that was read: those of strategies/base/errors.h, and the engines' UsageError,
// UnavailableError, InvalidArgumentError and DeadlineExceededError, as they are, others as RuntimeError.
void put_error(ByteWriter& bytes, const std::exception& error);
[[noreturn]] void throw_error(ByteReader& bytes);

// A worker, as a coordinator sees it.
class ServingWorker {
 public:
  // `index` is the worker's place among the tasks of the job "worker". Coordinators of other numbers get results of
  // their own.
  ServingWorker(ParameterServerStrategyV2& strategy, int index, int coordinator = 0);

  // Has a function called and waits for its result. Throws what the function threw, NotFoundError for a name that the
  // worker does not serve, TypeError for an argument that cannot be sent, and ValueError where the worker runs the
  // coordinator's program itself. A worker that serves nothing causes a deadlock.
  Value call(const std::string& name, const Value::Parts& arguments);
  // Ends serve(). await_end() then waits for it, if the worker has been called.
  void dismiss();
  void await_end();

 private:
  std::string end_name() const;

  ParameterServerStrategyV2& strategy_;
  const int index_;  // in the run
  const int coordinator_;
};

}  // namespace tandem
