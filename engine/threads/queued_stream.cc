#include "engine/threads/queued_stream.h"

#include <fmt/format.h>

#include <system_error>

#include "engine/threads/thread_worker.h"

namespace tandem::threads {
namespace {

std::string stream_text(const Device& device, int index) {
  return fmt::format("stream {} of {}", index, device.id().text());
}

struct Elsewhere {
  int process, step;
};
thread_local std::optional<Elsewhere> elsewhere;

}  // namespace

IssuedElsewhere::IssuedElsewhere(int process, int step) {
  elsewhere = {process, step};
}

IssuedElsewhere::~IssuedElsewhere() {
  elsewhere.reset();
}

StreamBase::StreamBase(RunContext& context, WorkerState& worker, Device& device, int index)
    : context_(context),
      worker_(worker),
      device_(device),
      index_(index),
      waiter_(context.control, stream_text(device, index), false) {}

std::string StreamBase::text() const {
  return stream_text(device_, index_);
}

void StreamBase::start_thread(std::function<void()> body) {
  try {
    thread_ = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw RunError(fmt::format("{}: no thread for it: {}", text(), error.what()));
  }
}

void StreamBase::end_thread() {
  if (!thread_.joinable()) return;
  is_ending_.store(true);
  waiter_.unpark();
  thread_.join();
}

void StreamBase::check_is_here(Op& op) const {
  for_each_operand(op.kernel, [&](const Tensor& operand) {
    if (!operand || dynamic_cast<const RemoteDevice*>(&operand.device()) == nullptr) return;
    throw UsageError(fmt::format("op '{}' on {} has an operand on {}, in another process: copy it first", op.name,
                                 device_.id().text(), operand.device().id().text()));
  });
}

bool StreamBase::is_lost() const {
  if (!context_.faults) return false;
  try {
    context_.faults->check(worker_.index(), context_.now());
    return false;
  } catch (const UnavailableError&) {
    worker_.fail(std::current_exception());
    return true;
  }
}

double StreamBase::slowdown_at(Nanoseconds now, int step) const {
  return context_.faults ? context_.faults->slowdown_of(worker_.index(), device_.id(), now, step) : 1;
}

int StreamBase::issuer() {
  return elsewhere ? elsewhere->process : issuer_of_family(family_of_this_thread());
}

int StreamBase::step_of_caller() const {
  if (elsewhere) return elsewhere->step;
  const Worker* issuer = Task::current().worker();
  return issuer == nullptr ? worker_.step() : static_cast<const ThreadWorker*>(issuer)->step();
}

Record StreamBase::make_record(RecordKind kind, Category category, Name name, int step) const {
  return {.kind = kind,
          .category = category,
          .name = name,
          .worker = worker_.index(),
          .device = device_.index(),
          .stream = index_,
          .step = step};
}

Record StreamBase::make_record(const Collective& collective, int step) const {
  const CollectiveCall& call = *collective.call;
  Record record = make_record(RecordKind::collective, Category::communication, call.name(collective.rank), step);
  record.bytes = static_cast<double>(call.spec().buffer_bytes(call.ranks()));
  record.ranks = call.ranks();
  record.sequence = call.record_sequence();
  return record;
}

void StreamBase::note_failure(std::string_view name, std::string_view what) {
  worker_.fail(std::make_exception_ptr(RunError(fmt::format("op '{}' on {}: {}", name, device_.id().text(), what))));
}

void StreamBase::note_invalid_argument(std::string_view name, std::string_view what) {
  worker_.fail(
      std::make_exception_ptr(InvalidArgumentError(fmt::format("op '{}' on {}: {}", name, device_.id().text(), what))));
}

// After a missed deadline a worker breaks off its later calls: other ranks would only run into their own deadlines.
bool StreamBase::take_part(const Collective& collective) {
  if (const auto error = worker_.missed_deadline()) collective.call->break_off(error);
  return collective.call->execute(collective.rank, *this, waiter_, collective.timeout_s);
}

}  // namespace tandem::threads
