#include "engine/sim/stream_work.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "engine/kernel_operands.h"
#include "engine/kernels/kernels.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {

void SimEvent::synchronize() {
  device_.repeated(true);
  Scheduler& scheduler = device_.run().scheduler();
  scheduler.pay_debt();
  const bool waits = !is_complete_;
  if (waits) {
    scheduler.wait(
        waiting_, [this] { return is_complete_; }, [this] { return text(); });
  }
  device_.run().note_use(device_.worker());
  if (!waits) return;
  if (device_.threads() == nullptr) scheduler.sleep(device_.costs().synchronize_s());
}

void SimEvent::complete() {
  is_complete_ = true;
  device_.run().scheduler().wake_all(waiting_, device_.threads());
  for (SimStream* stream : std::exchange(streams_, {})) {
    stream->go_on(device_.threads(), [stream] { stream->finish_head(); });
  }
}

std::string SimEvent::text() const {
  return "an event of " + device_.name();
}

OpNeeds::OpNeeds(Kernel&& kernel, bool is_executed) {
  bool is_needed = is_executed || std::holds_alternative<kernel::HostFunction>(kernel);
  for_each_operand(kernel, [&](const Tensor& operand) { is_needed |= operand.has_lease(); });
  if (!is_needed) return;
  for_each_operand(kernel, [](Tensor& operand) { operand.lend(); });
  kernel_ = std::make_unique<Kernel>(std::move(kernel));
}

void OpNeeds::execute() const {
  tandem::execute(*kernel_);
}

void* OpWork::operator new(std::size_t size) {
  TANDEM_CHECK(Memory::current != nullptr && size == sizeof(OpWork), "an op outside a run");
  void* const memory = Memory::current->pool_.malloc();
  return memory != nullptr ? memory : throw std::bad_alloc();
}

void OpWork::operator delete(void* work) {
  Memory::current->pool_.free(work);
}

void OpWork::take_effect(const SimDevice& device) const {
  try {
    needs_.execute();
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(fmt::format("op '{}' on {}: {}", record_.name.text(), device.id().text(), error.what()));
  } catch (const std::exception& error) {
    throw RunError(fmt::format("op '{}' on {}: {}", record_.name.text(), device.id().text(), error.what()));
  }
}

// Callbacks of the hot path capture no more than two pointers, which std::function holds without allocating.
void OpWork::start(SimStream& stream) {
  record_.start_ns = Simulation::now_ns();
  const SimDevice& device = stream.sim_device();
  SimRun& run = stream.sim_device().run();
  const double fault = run.faults() != nullptr ? run.faults()->factor_of_op(device.place(), record_.step) : 1;
  const double seconds = seconds_ * (device.is_in_collective() ? device.costs().slowdown_by_collectives() : 1);
  run.simulation().execute(device.node(), fault * seconds, fault * alone_s_, [this, &stream] { end(stream); });
}

void OpWork::end(SimStream& stream) {
  SimRun& run = stream.sim_device().run();
  guarded(run.scheduler(), [&] {
    if (run.carries_values()) take_effect(stream.sim_device());
    record_.end_ns = Simulation::now_ns();
    run.add_record(record_);
    if (listener_ != nullptr) listener_->ended(record_);
    stream.finish_head();
  });
}

void CopyWork::start(SimStream& stream) {
  record_.start_ns = Simulation::now_ns();
  const double overhead_s = stream.sim_device().costs().op_overhead_s();
  if (overhead_s <= 0) return move(stream);
  stream.sim_device().run().simulation().at(Simulation::now_s() + overhead_s, [this, &stream] {
    guarded(stream.sim_device().run().scheduler(), [&] { move(stream); });
  });
}

// Moves the data as a call of the worker that issued the copy, if they come from or go to another machine.
bool CopyWork::call(SimStream& stream) {
  SimDevice& server = stream.sim_device();
  SimRun& run = server.run();
  auto& from = static_cast<SimDevice&>(from_.device());
  auto& to = static_cast<SimDevice&>(to_.device());
  const bool sends = &from == &server;
  const SimDevice& client = sends ? to : from;
  if ((!sends && &to != &server) || !run.remote_calls().are_apart(server.node(), client.node())) return false;
  const auto bytes = static_cast<double>(from_.size_bytes());
  const auto transfer = [&run, &from, &to, bytes](Simulation::Then then) {
    guarded(run.scheduler(), [&] { move_bytes(from, to, bytes, true, std::move(then)); });
  };
  run.remote_calls().make({.worker = server.worker(),
                           .server = server.node(),
                           .client = client.node(),
                           .sends = sends,
                           .bytes = bytes,
                           .transfer = transfer},
                          [this, &stream] { end(stream); });
  return true;
}

void CopyWork::move(SimStream& stream) {
  if (is_remote_ && call(stream)) return;
  auto& from = static_cast<SimDevice&>(from_.device());
  auto& to = static_cast<SimDevice&>(to_.device());
  const auto bytes = static_cast<double>(from_.size_bytes());
  const auto then = [this, &stream] { end(stream); };
  if (record_.category == Category::input) return move_input(from, to, bytes, then);
  move_bytes(from, to, bytes, true, then);
}

void CopyWork::end(SimStream& stream) {
  SimRun& run = stream.sim_device().run();
  if (run.carries_values()) std::memmove(to_.data(), from_.data(), from_.size_bytes());
  record_.end_ns = Simulation::now_ns();
  run.add_record(record_);
  stream.finish_head();
}

void RecordWork::start(SimStream& stream) {
  event_->complete();
  stream.finish_head();
}

void WaitWork::start(SimStream& stream) {
  if (event_->is_complete()) return stream.finish_head();
  event_->finish_head_when_complete(stream);
  stream.begin_wait();
}

void move_input(SimDevice& from, SimDevice& to, double bytes, Simulation::Then then) {
  const auto is_between = [&](DeviceType source, DeviceType target) {
    return from.id().type == source && to.id().type == target && from.worker() == to.worker();
  };
  const bool is_loaded = is_between(DeviceType::cpu, DeviceType::gpu);
  if (!is_loaded && !is_between(DeviceType::gpu, DeviceType::cpu)) {
    return move_bytes(from, to, bytes, true, std::move(then));
  }
  SimRun& run = from.run();
  if (run.symmetry() != nullptr) {
    return is_loaded ? run.symmetry()->load(from, to, bytes, std::move(then))
                     : run.symmetry()->store(from, to, bytes, std::move(then));
  }
  const NodeIndex begin = is_loaded ? run.nearest_processor(to.node()) : from.node();
  const NodeIndex end = is_loaded ? to.node() : run.nearest_processor(from.node());
  run.network().transfer_over(run.simulation().platform().route(begin, end), {from.node(), to.node()}, bytes, true,
                              std::move(then));
}

void move_bytes(SimDevice& from, SimDevice& to, double bytes, bool with_latency, Simulation::Then then) {
  SimRun& run = from.run();
  if (from.node() != to.node()) {
    if (run.symmetry() != nullptr) return run.symmetry()->copy(from, to, bytes, with_latency, std::move(then));
    return run.network().transfer(from.node(), to.node(), bytes, with_latency, std::move(then));
  }
  const DeviceCosts& costs = from.costs();
  const double seconds = costs.copy_s(bytes);
  if (!costs.copies_occupy()) return run.simulation().at(Simulation::now_s() + seconds, std::move(then));
  run.simulation().execute(from.node(), seconds, costs.copy_alone_s(bytes), std::move(then));
}

}  // namespace tandem::sim
