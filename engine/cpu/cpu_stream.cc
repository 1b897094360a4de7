#include "engine/cpu/cpu_stream.h"

#include <fmt/format.h>

#include <cstring>
#include <system_error>

#include "engine/cpu/cpu_worker.h"
#include "engine/kernels/kernels.h"

namespace tandem::cpu {
namespace {

// Work belongs to the step of the worker that issues it, which need not own the device.
int step_of_caller(const WorkerState& owner) {
  const Worker* issuer = Task::current().worker();
  return issuer == nullptr ? owner.step() : static_cast<const CpuWorker*>(issuer)->step();
}

std::string stream_text(const Device& device, int index) {
  return fmt::format("stream {} of {}", index, device.id().text());
}

}  // namespace

void RecordLog::add(Record record) {
  if (chunks_.empty() || chunks_.back().size() == kChunkRecords) chunks_.emplace_back().reserve(kChunkRecords);
  chunks_.back().push_back(std::move(record));
}

void RecordLog::move_to(std::vector<Record>& records) {
  for (std::vector<Record>& chunk : chunks_) {
    records.insert(records.end(), std::move_iterator(chunk.begin()), std::move_iterator(chunk.end()));
  }
  chunks_.clear();
}

class CpuStream::Idle final : public Wait {
 public:
  explicit Idle(const CpuStream& stream) : stream_(stream) {}
  bool is_over() const override { return !stream_.queue_.is_empty() || stream_.is_finishing_.load(); }
  std::string text() const override { return "work"; }
  bool is_idle() const override { return true; }

 private:
  const CpuStream& stream_;
};

CpuStream::CpuStream(RunContext& context, WorkerState& worker, Device& device, int index)
    : context_(context),
      worker_(worker),
      device_(device),
      index_(index),
      waiter_(context.control, stream_text(device, index)) {
  try {
    thread_ = std::thread([this] { work_off(); });
  } catch (const std::system_error& error) {
    throw RunError(fmt::format("{}: no thread for it: {}", text(), error.what()));
  }
}

CpuStream::~CpuStream() {
  finish();
}

std::string CpuStream::text() const {
  return stream_text(device_, index_);
}

template <typename Work>
void CpuStream::push(Work&& work) {
  queue_.push(Item{std::forward<Work>(work), step_of_caller(worker_)});
  waiter_.unpark();
}

void CpuStream::launch(Op op) {
  push(std::move(op));
}

void CpuStream::copy(const Tensor& to, const Tensor& from, Category category) {
  TANDEM_CHECK(to && from, "a copy without an operand");
  TANDEM_CHECK(to.dtype() == from.dtype(), "a copy between element types");
  TANDEM_CHECK(to.element_count() == from.element_count(),
               "a copy of " + from.shape().text() + " to " + to.shape().text());
  TANDEM_CHECK(&to.device() == &device_ || &from.device() == &device_, "a copy on a stream of neither device");
  push(CopyItem{to, from, category});
}

Event CpuStream::record() {
  auto event = std::make_shared<CpuEvent>(*this);
  push(RecordItem{event});
  return Event(std::move(event));
}

void CpuStream::wait(const Event& event) {
  if (event.is_complete()) return;
  auto state = std::dynamic_pointer_cast<CpuEvent>(event.state());
  TANDEM_CHECK(state != nullptr, "an event of another engine");
  push(WaitItem{std::move(state)});
}

void CpuStream::synchronize() {
  if (queue_.is_empty() && !context_.control.is_stopped()) {
    worker_.throw_if_failed();
    return;
  }
  record().synchronize();
}

void CpuStream::join(std::shared_ptr<CollectiveCall> call, int rank, std::optional<double> limit_s) {
  push(CollectiveItem{std::move(call), rank, limit_s});
}

void CpuStream::finish() {
  if (!thread_.joinable()) return;
  is_finishing_.store(true);
  waiter_.unpark();
  thread_.join();
}

void CpuStream::work_off() {
  waiter_.use_on_this_thread();
  for (;;) {
    if (Item* item = queue_.front()) {
      std::visit([&](auto& work) { perform(work, item->step); }, item->work);
      queue_.pop();
    } else if (is_finishing_.load()) {
      break;
    } else {
      waiter_.wait(Idle(*this), nullptr, Stoppable::no);
    }
  }
  waiter_.leave_this_thread();
}

template <typename Work>
bool CpuStream::attempt(const std::string& name, Work&& work) {
  if (context_.control.is_stopped() || worker_.has_failed()) return false;
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    fail_op(name, error.what());
  } catch (...) {
    fail_op(name, "an exception of unknown type");
  }
  return false;
}

void CpuStream::fail_op(const std::string& name, std::string_view what) {
  worker_.fail(std::make_exception_ptr(RunError(fmt::format("op '{}' on {}: {}", name, device_.id().text(), what))));
}

void CpuStream::perform(Op& op, int step) {
  const Nanoseconds start = context_.now();
  if (!attempt(op.name, [&] { execute(op.kernel); })) return;
  const Nanoseconds end = context_.now();
  log_.add({.kind = RecordKind::op,
            .category = op.category,
            .name = std::move(op.name),
            .worker = worker_.index(),
            .device = device_.index(),
            .stream = index_,
            .step = step,
            .start_ns = start,
            .end_ns = end,
            .bytes = op.cost.bytes,
            .flops = op.cost.flops});
}

void CpuStream::perform(CopyItem& copy, int step) {
  const Nanoseconds start = context_.now();
  const std::size_t bytes = copy.to.size_bytes();
  if (!attempt("copy", [&] { std::memmove(copy.to.data(), copy.from.data(), bytes); })) return;
  const Nanoseconds end = context_.now();
  log_.add({.kind = RecordKind::copy,
            .category = copy.category,
            .name = "copy",
            .worker = worker_.index(),
            .device = device_.index(),
            .stream = index_,
            .step = step,
            .start_ns = start,
            .end_ns = end,
            .bytes = static_cast<double>(bytes)});
}

void CpuStream::perform(RecordItem& record, int /*step*/) {
  record.event->complete();
}

void CpuStream::perform(WaitItem& wait, int /*step*/) {
  wait.event->wait_on_stream(waiter_);
}

// Takes part even when an op of this worker has failed: the other devices wait for it. After a missed deadline it takes
// nobody's time any more: the next calls would only run into theirs.
bool CpuStream::take_part(const CollectiveItem& collective) {
  if (const auto error = worker_.missed_deadline()) collective.call->break_off(error);
  try {
    return collective.call->perform(collective.rank, *this, waiter_, collective.limit_s);
  } catch (const DeadlineExceededError&) {
    worker_.miss_deadline(std::current_exception());
    return false;
  } catch (const std::exception& error) {  // of a performer
    fail_op(std::string(collective.call->name(collective.rank)), error.what());
    return false;
  }
}

void CpuStream::perform(CollectiveItem& collective, int step) {
  if (context_.control.is_stopped()) return;
  const Nanoseconds start = context_.now();
  if (!take_part(collective)) return;
  const Nanoseconds end = context_.now();
  log_.add({.kind = RecordKind::collective,
            .category = Category::communication,
            .name = std::string(collective.call->name(collective.rank)),
            .worker = worker_.index(),
            .device = device_.index(),
            .stream = index_,
            .step = step,
            .start_ns = start,
            .end_ns = end,
            .bytes = static_cast<double>(collective.call->record_bytes()),
            .ranks = collective.call->ranks(),
            .sequence = collective.call->sequence()});
}

}  // namespace tandem::cpu
