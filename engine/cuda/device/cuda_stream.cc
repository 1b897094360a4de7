#include "engine/cuda/device/cuda_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "engine/cuda/device/device_memory.h"
#include "engine/cuda/device/nvtx_range.h"
#include "engine/kernel_operands.h"

namespace tandem::cuda {

CudaStream::CudaStream(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Device& device,
                       int index, std::unique_ptr<OpExecutor> executor, std::shared_ptr<IssueOrder> order, int number)
    : QueuedStream(context, worker, device, index),
      watch_(watch),
      executor_(std::move(executor)),
      order_(std::move(order)),
      number_(number) {
  order_->set_stream(number_, *this);
  start();
  if (Gpu* gpu = executor_->gpu()) gpu->add_user(*this);
}

CudaStream::~CudaStream() {
  if (Gpu* gpu = executor_->gpu()) gpu->remove_user(*this);
  end_thread();
}

std::unique_lock<std::mutex> CudaStream::begin_issue() {
  std::unique_lock lock(issue_mutex_);
  ++issued_;
  return lock;
}

void CudaStream::lend(Tensor& operand) {
  if (!operand) return;
  if (auto* buffer = dynamic_cast<DeviceBuffer*>(&operand.buffer())) {
    for (const StreamPoint former : buffer->note_use({number_, issued_})) issue_behind(former);
  }
  operand.lend();
}

// Also waits for what the other stream has issued since; its order of issue need not be locked for that.
void CudaStream::issue_behind(StreamPoint point) {
  auto& other = static_cast<CudaStream&>(*order_->stream(point.stream));
  StreamClock clock;
  clock.reach(point);
  auto event = std::make_shared<CudaEvent>(other);
  event->set_clock(std::move(clock));
  other.push(Mark{event});
  note_wait(*event);
  push(WaitFor{std::move(event)});
}

void CudaStream::wait_for(const GpuEvent& point) {
  try {
    const auto outcome = watch_.wait(point.handle(), context_.control, text());
    if (outcome == GpuWatch::Outcome::stopped) {
      if (std::uncaught_exceptions() > 0) return;  // a destructor, in a task that is already ending
      context_.control.throw_stopped();
    }
    executor_->settle();
  } catch (const RunError&) {
    worker_.fail(std::current_exception());
  }
}

void CudaStream::finish(std::vector<Record>& records) {
  end_thread();
  executor_->finish(records);
}

void CudaStream::begin_thread() {
  attempt("the start of a stream", threads::After::success, [&] { executor_->use_on_this_thread(); });
}

bool CudaStream::tidy() {
  bool has_more = false;
  attempt("the times of ops", threads::After::success, [&] { has_more = executor_->tidy(); });
  return has_more;
}

// Holds launches back if there are graphs, since nothing can observe whether an op has been issued until a mark, a
// wait, a copy or a collective follows it. The GPU still begins after some dozens of ops, and gets more and more at a
// time.
void CudaStream::execute(Op& op, int step) {
  const std::lock_guard lock(executor_mutex_);
  if (is_lost()) return;
  const bool is_refused =
      std::holds_alternative<kernel::Largest>(op.kernel) || std::holds_alternative<kernel::TopK>(op.kernel);
  const bool is_launch = !is_function(op.kernel) && !is_refused;
  const double slowdown = slowdown_at(context_.now(), step);  // the GPU may begin the op later
  const bool is_held_back = executor_->graphs() != nullptr && is_launch && slowdown == 1;
  if (!is_held_back || !batch_.takes(op, step)) issue_held_back();
  if (!is_held_back) return launch_now(op, step, slowdown);
  batch_.add(std::move(op), step);
  if (batch_.size() < batch_limit_) return;
  launch_batch();
  batch_limit_ = std::min(batch_limit_ + batch_limit_ / 4, kMostOfBatch);
}

void CudaStream::flush() {
  const std::lock_guard lock(executor_mutex_);
  issue_held_back();
}

void CudaStream::issue_held_back() {
  launch_batch();
  batch_limit_ = kFirstBatch;
}

void CudaStream::launch_batch() {
  if (batch_.is_empty()) return;
  OpBatch batch = std::exchange(batch_, {});
  std::vector<Op> ops = batch.take_ops();
  if (ops.size() == 1) return launch_now(ops.front(), batch.step());
  const Name name = fmt::format("graph of {} ops", ops.size());
  attempt(name, threads::After::success, [&] {
    const NvtxRange range(name);
    const WorkStart start = executor_->begin(context_.is_recorded(RecordKind::op));
    executor_->graphs()->launch(batch.series(), [&] {
      for (const Op& op : ops) executor_->execute(op);
    });
    std::optional<Record> record;
    if (context_.is_recorded(RecordKind::op)) {
      record = make_record(RecordKind::op, ops.front().category, name, batch.step());
      record->bytes = batch.bytes();
      record->flops = batch.flops();
    }
    executor_->end(start, record, {.ops = std::move(ops)});
  });
}

void CudaStream::launch_now(Op& op, int step, double slowdown) {
  attempt(op.name, threads::After::success, [&] {
    const NvtxRange range(op.name);
    const WorkStart start = executor_->begin(context_.is_recorded(RecordKind::op));
    if (slowdown != 1) executor_->note_time();
    executor_->execute(op);
    if (slowdown != 1) executor_->hold_back(slowdown);
    std::optional<Record> record;
    if (context_.is_recorded(RecordKind::op)) {
      record = make_record(RecordKind::op, op.category, op.name, step);
      record->bytes = op.cost.bytes;
      record->flops = op.cost.flops;
    }
    executor_->end(start, record, {.kernel = std::move(op.kernel)});
  });
}

void CudaStream::execute(Copy& copy, int step) {
  const std::lock_guard lock(executor_mutex_);
  issue_held_back();
  attempt("copy", threads::After::success, [&] {
    const NvtxRange range("copy");
    const WorkStart start = executor_->begin(context_.is_recorded(RecordKind::copy));
    executor_->copy(copy.to, copy.from);
    std::optional<Record> record;
    if (context_.is_recorded(RecordKind::copy)) {
      record = make_record(RecordKind::copy, copy.category, "copy", step);
      record->bytes = static_cast<double>(copy.to.size_bytes());
    }
    executor_->end(start, record, {.first = copy.to, .second = copy.from});
  });
}

void CudaStream::execute(Mark& mark, int /*step*/) {
  const std::lock_guard lock(executor_mutex_);
  this->mark(mark);
}

// Waking this stream's thread and being woken by it takes as long as ten small kernels. What others push meanwhile is
// executed after the mark, or waits for it. What is held back is left to the thread, which knows its GPU.
bool CudaStream::marks_here(Mark& mark) {
  const std::unique_lock lock(executor_mutex_, std::try_to_lock);
  if (!lock || !is_empty() || !batch_.is_empty()) return false;
  this->mark(mark);
  return true;
}

// Issues the event even in a failed worker, because somebody may wait for it.
void CudaStream::mark(Mark& mark) {
  issue_held_back();
  std::shared_ptr<GpuEvent> point;
  attempt("record", threads::After::success, [&] { point = executor_->mark(); });
  mark.event->issue(std::move(point));
}

void CudaStream::execute(WaitFor& wait, int /*step*/) {
  const std::lock_guard lock(executor_mutex_);
  issue_held_back();
  if (!wait.event->wait_until_issued(waiter_) || wait.event->point() == nullptr) return;
  attempt("wait", threads::After::success, [&] { executor_->wait(*wait.event->point()); });
}

// Takes part even when an op of this worker has failed, because the other devices wait for it.
void CudaStream::execute(Collective& collective, int step) {
  const std::lock_guard lock(executor_mutex_);
  issue_held_back();
  const std::string name(collective.call->name(collective.rank));
  attempt(name, threads::After::anything, [&] {
    const NvtxRange range(name);
    issue(collective, step);
  });
}

void CudaStream::issue(const Collective& collective, int step) {
  threads::CollectiveCall& call = *collective.call;
  if (collective.timeout_s && !worker_.missed_deadline()) executor_->drain();
  const auto deadline = threads::deadline_after(collective.timeout_s);
  const bool is_recorded = context_.is_recorded(RecordKind::collective);
  const WorkStart start = executor_->begin(is_recorded);
  KeepAlive keep_alive{.first = call.output(collective.rank), .second = call.input(collective.rank)};
  if (!take_part(collective)) return;
  std::optional<Record> record;
  if (is_recorded) record = make_record(collective, step);
  executor_->end(start, record, std::move(keep_alive));
  if (collective.timeout_s) wait_within(collective, deadline);
}

void CudaStream::wait_within(const Collective& collective, threads::Clock::time_point deadline) {
  const auto point = executor_->mark();
  if (!point || watch_.wait(point->handle(), context_.control, text(), deadline) != GpuWatch::Outcome::late) return;
  if (collective.call->executor() != nullptr) collective.call->executor()->abort();
  throw collective.call->deadline_error(collective.rank, *collective.timeout_s);
}

}  // namespace tandem::cuda
