#include "strategies/servers/serving_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/base/errors.h"
#include "strategies/servers/value_message.h"

namespace tandem {
namespace {

// A type of error that keeps its type when it is sent to another process.
struct PortableError {
  bool (*is)(const std::exception& error);
  void (*raise)(const std::string& text);
};
template <typename E>
constexpr PortableError kPortable = {
    .is = [](const std::exception& error) { return dynamic_cast<const E*>(&error) != nullptr; },
    .raise = [](const std::string& text) { throw E(text); }};

// The last entry matches every other error.
constexpr std::array kPortableErrors = {kPortable<ValueError>,
                                        kPortable<TypeError>,
                                        kPortable<KeyError>,
                                        kPortable<AttributeError>,
                                        kPortable<AssertionError>,
                                        kPortable<NotImplementedError>,
                                        kPortable<OutOfRangeError>,
                                        kPortable<NotFoundError>,
                                        kPortable<DataLossError>,
                                        kPortable<UnknownError>,
                                        kPortable<UsageError>,
                                        kPortable<UnavailableError>,
                                        kPortable<InvalidArgumentError>,
                                        kPortable<DeadlineExceededError>,
                                        kPortable<RuntimeError>};

}  // namespace

std::shared_ptr<Mailbox> orders_of(Worker& user, int worker) {
  return user.shared().mailbox(worker, "functions to run");
}

void put_error(ByteWriter& bytes, const std::exception& error) {
  const auto kind = std::find_if(kPortableErrors.begin(), kPortableErrors.end() - 1,
                                 [&](const PortableError& portable) { return portable.is(error); });
  bytes.put(static_cast<std::size_t>(kind - kPortableErrors.begin())).put_text(error.what());
}

void throw_error(ByteReader& bytes) {
  const auto kind = bytes.get<std::size_t>();
  kPortableErrors.at(kind).raise(bytes.get_text());
  TANDEM_UNREACHABLE("an error that was not thrown");
}

void acknowledge_end(Worker& user, ByteReader& order) {
  const auto coordinator = order.get<int>();
  user.shared().mailbox(coordinator, order.get_text())->send({});
}

WorkerMessage end_of_job() {
  ByteWriter bytes;
  return {.text = bytes.put(Order::end_of_job).take()};
}

ServingWorker::ServingWorker(ParameterServerStrategyV2& strategy, int index, int coordinator)
    : strategy_(strategy),
      index_(strategy.parameter_server_extended().devices_of_worker(index).front()->worker()),
      coordinator_(coordinator) {}

Value ServingWorker::call(const std::string& name, const Value::Parts& arguments) {
  Worker& here = strategy_.extended().worker();
  if (here.index() == index_) {
    throw ValueError(fmt::format(
        "worker {} runs the coordinator's program and cannot serve '{}' beside it: give the cluster a chief", index_,
        name));
  }
  const std::string results = fmt::format("results of worker {} for coordinator {}", index_, coordinator_);
  WorkerMessage order;
  ByteWriter bytes;
  bytes.put(Order::call).put(here.index()).put_text(results).put_text(name);
  put_value(bytes, order.tensors, ready_to_send(here, Value::tuple(arguments)), strategy_);
  order.text = bytes.take();
  strategy_.parameter_server_extended().note_served(index_);
  orders_of(here, index_)->send(std::move(order));

  WorkerMessage answer = here.shared()
                             .mailbox(here.index(), results)
                             ->receive(fmt::format("worker {} to run the function '{}'", index_, name));
  ParameterServerV2Extended& extended = strategy_.parameter_server_extended();
  ByteReader result(answer.text);
  const auto has_failed = result.get<bool>();
  extended.add_staleness(result.get<Staleness>());
  if (has_failed) throw_error(result);
  TensorsOf tensors(std::move(answer.tensors));
  return get_value(result,
                   {.next_tensor = [&](std::size_t) { return tensors.next(); },
                    .variable = [&](const std::string& shared_name,
                                    const VariableSpec& spec) { return extended.shared_variable(shared_name, spec); }});
}

std::string ServingWorker::end_name() const {
  return fmt::format("end of the service of worker {}", index_);
}

void ServingWorker::dismiss() {
  Worker& here = strategy_.extended().worker();
  ByteWriter bytes;
  bytes.put(Order::end).put(here.index()).put_text(end_name());
  orders_of(here, index_)->send({.text = bytes.take()});
}

void ServingWorker::await_end() {
  if (!strategy_.parameter_server_extended().has_served(index_)) return;
  Worker& here = strategy_.extended().worker();
  here.shared().mailbox(here.index(), end_name())->receive(fmt::format("worker {} to end its service", index_));
}

// If the run has failed, it ends the workers' wait.
ParameterServerStrategyV2::~ParameterServerStrategyV2() {
  if (!has_coordinator_) return;
  try {
    const int workers = parameter_server_extended().worker_count();
    for (int worker = 0; worker < workers; ++worker) ServingWorker(*this, worker).dismiss();
    for (int worker = 0; worker < workers; ++worker) ServingWorker(*this, worker).await_end();
  } catch (...) {
  }
}

}  // namespace tandem
