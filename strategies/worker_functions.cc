#include "strategies/worker_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "strategies/base/errors.h"
#include "strategies/serving_worker.h"
#include "strategies/values/value_message.h"

namespace tandem {
namespace {

// Returns the worker's place among the tasks of its job.
int index_in_job(const Worker& worker) {
  int index = 0;
  for (const WorkerSpec& spec : worker.cluster().first(static_cast<std::size_t>(worker.index()))) {
    index += spec.job == worker.job();
  }
  return index;
}

// Copies a tensor on another worker's device to this worker's, in the order of the device's own work.
Tensor brought(Device& device, const Tensor& tensor) {
  if (tensor.device().worker() == device.worker()) return tensor;
  Tensor copy = device.allocate(tensor.dtype(), tensor.shape());
  device.compute_stream().copy(copy, tensor);
  return copy;
}

// Runs functions on one worker, under its strategy.
class Service {
 public:
  explicit Service(Worker& worker) : worker_(worker), index_(index_in_job(worker)), strategy_(worker) {
    extended().serve_functions();
  }

  // Returns the answer to an order whose function is `function`.
  WorkerMessage answer(const WorkerFunctions::Function& function, ByteReader& order, std::vector<Tensor> tensors) {
    const Value result = call(function, order, std::move(tensors));
    WorkerMessage message;
    ByteWriter bytes;
    bytes.put(false).put(extended().take_staleness());
    put_value(bytes, message.tensors, result, strategy_);
    message.text = bytes.take();
    return message;
  }
  WorkerMessage failure(const std::exception& error) {
    ByteWriter bytes;
    bytes.put(true).put(extended().take_staleness());
    put_error(bytes, error);
    return {.text = bytes.take()};
  }

 private:
  ParameterServerV2Extended& extended() { return strategy_.parameter_server_extended(); }
  const std::vector<Device*>& devices() { return extended().devices_of_worker(index_); }

  Value call(const WorkerFunctions::Function& function, ByteReader& order, std::vector<Tensor> tensors) {
    const Value::Parts arguments = arguments_of(order, TensorsOf(std::move(tensors)));
    const ParameterServerV2Extended::Assignment assignment(extended(), index_);
    const Scope scope = strategy_.scope();
    Value result = ready_to_send(worker_, function(strategy_, arguments));
    for (Device* device : devices()) device->synchronize();
    return result;
  }

  // Tensors go to the worker's first device; those of a per-replica value to each replica's device.
  Value::Parts arguments_of(ByteReader& order, TensorsOf tensors) {
    const auto device_of = [this](std::size_t part) -> Device& { return *devices()[part % devices().size()]; };
    return get_value(order,
                     {.next_tensor = [&](std::size_t part) { return brought(device_of(part), tensors.next()); },
                      .variable = [this](const std::string& name,
                                         const VariableSpec& spec) { return extended().shared_variable(name, spec); },
                      .place = [&](std::size_t part) { return device_of(part).id().text(); }})
        .parts();
  }

  Worker& worker_;
  const int index_;
  ParameterServerStrategyV2 strategy_;
};

}  // namespace

void WorkerFunctions::add(std::string name, Function function) {
  TANDEM_REQUIRE(function != nullptr, "a function of a worker that is empty");
  const auto [place, is_new] = functions_.try_emplace(name);
  if (!is_new) throw ValueError(fmt::format("there is a function '{}' already", name));
  place->second = std::move(function);
}

const WorkerFunctions::Function& WorkerFunctions::function(std::string_view name, const Worker& worker) const {
  if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, function] : functions_) known.push_back(other);
  throw NotFoundError(
      fmt::format("worker {} serves no function '{}' (known: {})", worker.task(), name, fmt::join(known, ", ")));
}

void WorkerFunctions::serve(Worker& worker) const {
  if (worker.job() != "worker") return;
  const std::shared_ptr<Mailbox> orders = orders_of(worker, worker.index());
  Service service(worker);
  for (;;) {
    WorkerMessage order = orders->receive("a function that a coordinator schedules by name");
    ByteReader bytes(order.text);
    if (bytes.get<Order>() == Order::end) return;
    const auto coordinator = bytes.get<int>();
    const std::shared_ptr<Mailbox> results = worker.mailbox(coordinator, bytes.get_text());
    WorkerMessage answer;
    try {
      const Function& wanted = function(bytes.get_text(), worker);
      answer = service.answer(wanted, bytes, std::move(order.tensors));
    } catch (const DeadlockError&) {
      throw;
    } catch (const std::exception& error) {
      answer = service.failure(error);
    }
    results->send(std::move(answer));
  }
}

}  // namespace tandem
