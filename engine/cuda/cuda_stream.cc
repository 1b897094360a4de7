#include "engine/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <exception>
#include <system_error>

#include "engine/cpu/cpu_worker.h"

namespace tandem::cuda {
namespace {

// Work belongs to the step of the worker that issues it, which need not own the device.
int step_of_caller(const cpu::WorkerState& owner) {
  const Worker* issuer = Task::current().worker();
  return issuer == nullptr ? owner.step() : static_cast<const cpu::CpuWorker*>(issuer)->step();
}

std::string stream_text(const Device& device, int index) {
  return fmt::format("stream {} of {}", index, device.id().text());
}

cpu::Clock::time_point after(double seconds) {
  constexpr double kLongest = 1e9;  // 30 years: further dates do not fit the clock
  if (seconds > kLongest) return cpu::kNever;
  return cpu::Clock::now() + std::chrono::duration_cast<cpu::Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

class CudaStream::Idle final : public cpu::Wait {
 public:
  explicit Idle(const CudaStream& stream) : stream_(stream) {}
  bool is_over() const override { return !stream_.queue_.is_empty() || stream_.is_finishing_.load(); }
  std::string text() const override { return "work"; }
  bool is_idle() const override { return true; }

 private:
  const CudaStream& stream_;
};

CudaStream::CudaStream(cpu::RunContext& context, cpu::WorkerState& worker, GpuWatch& watch, Device& device, int index,
                       std::unique_ptr<Lane> lane)
    : context_(context),
      worker_(worker),
      watch_(watch),
      device_(device),
      index_(index),
      lane_(std::move(lane)),
      waiter_(context.control, stream_text(device, index)) {
  try {
    thread_ = std::thread([this] { work_off(); });
  } catch (const std::system_error& error) {
    throw RunError(fmt::format("{}: no thread for it: {}", text(), error.what()));
  }
}

CudaStream::~CudaStream() {
  end_thread();
}

std::string CudaStream::text() const {
  return stream_text(device_, index_);
}

template <typename Work>
void CudaStream::push(Work&& work) {
  queue_.push(Item{std::forward<Work>(work), step_of_caller(worker_)});
  waiter_.unpark();
}

void CudaStream::launch(Op op) {
  push(std::move(op));
}

void CudaStream::copy(const Tensor& to, const Tensor& from, Category category) {
  TANDEM_CHECK(to && from, "a copy without an operand");
  TANDEM_CHECK(to.dtype() == from.dtype(), "a copy between element types");
  TANDEM_CHECK(to.element_count() == from.element_count(),
               "a copy of " + from.shape().text() + " to " + to.shape().text());
  TANDEM_CHECK(&to.device() == &device_ || &from.device() == &device_, "a copy on a stream of neither device");
  push(CopyItem{to, from, category});
}

Event CudaStream::record() {
  auto event = std::make_shared<CudaEvent>(*this);
  push(RecordItem{event});
  return Event(std::move(event));
}

void CudaStream::wait(const Event& event) {
  if (event.is_complete()) return;
  auto state = std::dynamic_pointer_cast<CudaEvent>(event.state());
  TANDEM_CHECK(state != nullptr, "an event of another engine");
  push(WaitItem{std::move(state)});
}

void CudaStream::synchronize() {
  record().synchronize();
}

void CudaStream::join(std::shared_ptr<cpu::CollectiveCall> call, int rank, std::optional<double> limit_s) {
  push(CollectiveItem{std::move(call), rank, limit_s});
}

void CudaStream::wait_for(const GpuEvent& point) {
  try {
    const auto outcome = watch_.wait(point.handle(), context_.control, text());
    if (outcome == GpuWatch::Outcome::stopped) {
      if (std::uncaught_exceptions() > 0) return;  // a destructor, in a task that is already ending
      context_.control.throw_stopped();
    }
    lane_->settle();
  } catch (const RunError&) {
    worker_.fail(std::current_exception());
  }
}

void CudaStream::end_thread() {
  if (!thread_.joinable()) return;
  is_finishing_.store(true);
  waiter_.unpark();
  thread_.join();
}

void CudaStream::finish(std::vector<Record>& records) {
  end_thread();
  lane_->finish(records);
}

void CudaStream::work_off() {
  waiter_.use_on_this_thread();
  attempt("the start of a stream", false, [&] { lane_->use_on_this_thread(); });
  for (;;) {
    if (Item* item = queue_.front()) {
      std::visit([&](auto& work) { perform(work, item->step); }, item->work);
      queue_.pop();
    } else if (is_finishing_.load()) {
      break;
    } else if (!tidy()) {
      waiter_.wait(Idle(*this), nullptr, cpu::Stoppable::no);
    }
  }
  waiter_.leave_this_thread();
}

bool CudaStream::tidy() {
  bool has_more = false;
  attempt("the times of ops", false, [&] { has_more = lane_->tidy(); });
  return has_more;
}

template <typename Work>
void CudaStream::attempt(const std::string& name, bool always, Work&& work) {
  if (context_.control.is_stopped() || (worker_.has_failed() && !always)) return;
  std::string what = "an exception of unknown type";
  try {
    work();
    return;
  } catch (const DeadlineExceededError&) {
    worker_.miss_deadline(std::current_exception());
    return;
  } catch (const cpu::RunStopped&) {
    return;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  worker_.fail(std::make_exception_ptr(RunError(fmt::format("op '{}' on {}: {}", name, device_.id().text(), what))));
}

Record CudaStream::blank_record(RecordKind kind, Category category, std::string name, int step) const {
  return {.kind = kind,
          .category = category,
          .name = std::move(name),
          .worker = worker_.index(),
          .device = device_.index(),
          .stream = index_,
          .step = step};
}

void CudaStream::perform(Op& op, int step) {
  attempt(op.name, false, [&] {
    const Beginning beginning = lane_->begin();
    lane_->execute(op);
    Record record = blank_record(RecordKind::op, op.category, op.name, step);
    record.bytes = op.cost.bytes;
    record.flops = op.cost.flops;
    lane_->end(beginning, std::move(record), {.kernel = std::move(op.kernel), .first = {}, .second = {}});
  });
}

void CudaStream::perform(CopyItem& copy, int step) {
  attempt("copy", false, [&] {
    const Beginning beginning = lane_->begin();
    lane_->copy(copy.to, copy.from);
    Record record = blank_record(RecordKind::copy, copy.category, "copy", step);
    record.bytes = static_cast<double>(copy.to.size_bytes());
    lane_->end(beginning, std::move(record), {.kernel = {}, .first = std::move(copy.to), .second = copy.from});
  });
}

// Issued whatever happens: somebody may wait for it.
void CudaStream::perform(RecordItem& record, int /*step*/) {
  std::shared_ptr<GpuEvent> point;
  attempt("record", false, [&] { point = lane_->mark(); });
  record.event->issue(std::move(point));
}

void CudaStream::perform(WaitItem& wait, int /*step*/) {
  if (!wait.event->wait_until_issued(waiter_) || wait.event->point() == nullptr) return;
  attempt("wait", false, [&] { lane_->wait(*wait.event->point()); });
}

// Takes part even when an op of this worker has failed: the other devices wait for it.
void CudaStream::perform(CollectiveItem& collective, int step) {
  const auto& call = *collective.call;
  attempt(std::string(call.name(collective.rank)), true, [&] { take_part(collective, step); });
}

// After a missed deadline a worker takes nobody's time any more: its next calls would only run into theirs.
void CudaStream::take_part(const CollectiveItem& collective, int step) {
  cpu::CollectiveCall& call = *collective.call;
  if (const auto error = worker_.missed_deadline()) call.break_off(error);
  if (collective.limit_s) lane_->drain();
  const auto deadline = collective.limit_s ? after(*collective.limit_s) : cpu::kNever;
  const Beginning beginning = lane_->begin();
  Kept kept{.kernel = {}, .first = call.output(collective.rank), .second = call.input(collective.rank)};
  if (!call.perform(collective.rank, *this, waiter_, collective.limit_s)) return;
  Record record =
      blank_record(RecordKind::collective, Category::communication, std::string(call.name(collective.rank)), step);
  record.bytes = static_cast<double>(call.record_bytes());
  record.ranks = call.ranks();
  record.sequence = call.sequence();
  lane_->end(beginning, std::move(record), std::move(kept));
  if (collective.limit_s) wait_within(collective, deadline);
}

void CudaStream::wait_within(const CollectiveItem& collective, cpu::Clock::time_point deadline) {
  const auto point = lane_->mark();
  if (!point || watch_.wait(point->handle(), context_.control, text(), deadline) != GpuWatch::Outcome::late) return;
  if (collective.call->performer() != nullptr) collective.call->performer()->abort();
  throw collective.call->deadline_error(collective.rank, *collective.limit_s);
}

}  // namespace tandem::cuda
