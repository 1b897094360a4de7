#include "strategies/servers/worker_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "strategies/base/errors.h"
#include "strategies/servers/serving_worker.h"
#include "strategies/servers/value_message.h"

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

  // Returns the answer to an order, whose function `find` returns by name.
  using Find = std::function<const WorkerFunctions::Function&(std::string_view name)>;
  WorkerMessage answer(const Find& find, ByteReader& order, std::vector<Tensor> tensors) {
    try {
      return success(find(order.get_text()), order, std::move(tensors));
    } catch (const DeadlockError&) {
      throw;
    } catch (const std::exception& error) {
      return failure(error);
    }
  }
  // Returns when everything that the functions have issued has been done, also on the parameter servers.
  void finish() {
    for (Device* device : extended().parameter_devices()) device->synchronize();
  }

 private:
  WorkerMessage success(const WorkerFunctions::Function& function, ByteReader& order, std::vector<Tensor> tensors) {
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
  if (worker.job() == "worker") serve_strategy(worker);
}

// A task beside this one waits for the end of the job, and then ends the service.
void WorkerFunctions::serve_until_end_of_job(Worker& worker) const {
  if (worker.job() != "worker") return worker.await_end_of_job();
  const auto await_end = [&worker] {
    try {
      worker.await_end_of_job();
      orders_of(worker, worker.index())->send(end_of_job());
    } catch (const RunStopped&) {  // the service ends with the run
    } catch (const std::exception&) {
    }
  };
  const std::unique_ptr<BackgroundTask> end = worker.tasks().start("end of the job", await_end);
  while (serve_strategy(worker)) {
  }
}

// Has a service only while there is something to serve, so that nothing of it is left when the job ends.
bool WorkerFunctions::serve_strategy(Worker& worker) const {
  const std::shared_ptr<Mailbox> orders = orders_of(worker, worker.index());
  const auto find = [&](std::string_view name) -> const Function& { return function(name, worker); };
  std::optional<Service> service;
  for (;;) {
    WorkerMessage message = orders->receive("a function that a coordinator schedules by name");
    ByteReader order(message.text);
    const auto kind = order.get<Order>();
    if (kind == Order::end_of_job) return false;
    if (kind == Order::end) {
      if (service) service->finish();
      const bool is_awaited = service.has_value();
      service.reset();
      if (is_awaited) acknowledge_end(worker, order);
      return true;
    }
    if (!service) service.emplace(worker);
    const auto coordinator = order.get<int>();
    const std::shared_ptr<Mailbox> results = worker.shared().mailbox(coordinator, order.get_text());
    results->send(service->answer(find, order, std::move(message.tensors)));
  }
}

}  // namespace tandem
