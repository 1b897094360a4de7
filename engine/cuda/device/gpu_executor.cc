#include "engine/cuda/device/gpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "engine/cuda/device/cuda_error.h"

namespace tandem::cuda {
namespace {

constexpr int kSettleEvery = 64;  // operations: finished ones must not hold their memory for long
constexpr int kMarkEvery = 32;    // operations without records that share one event
constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS asks for on Hopper
constexpr std::size_t kTimeBytes = 8;
constexpr std::size_t kMostPending = 1 << 14;  // beyond it the host waits for the GPU

bool needs_scratch(const Kernel& kernel) {
  return std::holds_alternative<kernel::SumAxis>(kernel) ||
         std::holds_alternative<kernel::SoftmaxCrossEntropy>(kernel) ||
         std::holds_alternative<kernel::ScatterRows>(kernel) || std::holds_alternative<kernel::AddRows>(kernel) ||
         std::holds_alternative<kernel::NormalizeParameterGradients>(kernel);
}

bool needs_blas(const Kernel& kernel) {
  return std::holds_alternative<kernel::Gemm>(kernel) || std::holds_alternative<kernel::BatchedGemm>(kernel);
}

}  // namespace

// The life of an operation:
//
//   state     | held in  | next: on what
//   ----------|----------|----------------------------------------------------------------------------------
//   issued    | pending_ | done: settle() sees its end event and releases the operands. Or abandoned
//   done      | done_    | recorded: tidy() reads the times of its two events. Final without a record
//   recorded  | log_     | final: finish() hands the record over
//   abandoned | leaked   | final: the GPU hangs and may still use the operands, so nobody frees them
//
// settle() runs every kSettleEvery operations, after a task has waited, and before tidy(), which runs only when there
// is nothing to issue, since reading the times of events is slow.

GpuExecutor::GpuExecutor(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu,
                         StreamUse use, std::string text, bool with_graphs)
    : context_(context),
      worker_(worker),
      watch_(watch),
      gpu_(gpu),
      use_(use),
      text_(std::move(text)),
      stream_(gpu.handles().take_stream(use)) {
  const UseGpu use_gpu(gpu_.ordinal());
  try {
    fault_ = gpu_.handles().take_fault();
    if (with_graphs) graphs_.emplace(stream_, gpu_.graph_counts());
  } catch (...) {
    release();
    throw;
  }
}

GpuExecutor::~GpuExecutor() {
  release();
}

// Gives back only what is idle, because the GPU may hang even now. In a run that was stopped, the thread of another
// stream may have launched this one's part of a collective after finish().
void GpuExecutor::release() noexcept {
  if (is_abandoned_) return;
  if (query(stream_) == cudaErrorNotReady && !watch_.outlasts(stream_, true)) return gpu_.note_hang();
  if (blas_ != nullptr) gpu_.handles().give_back(blas_);
  if (blas_workspace_ != nullptr) gpu_.memory()->give_back(blas_workspace_, kBlasWorkspaceBytes);
  if (scratch_.at != nullptr) gpu_.memory()->give_back(scratch_.at, scratch_.bytes);
  if (noted_time_ != nullptr) gpu_.memory()->give_back(noted_time_, kTimeBytes);
  if (fault_ != nullptr) gpu_.handles().give_back(fault_);
  gpu_.handles().give_back(stream_, use_);
}

void GpuExecutor::use_on_this_thread() {
  check(cudaSetDevice(gpu_.ordinal()), "cudaSetDevice", gpu_.text());
}

WorkStart GpuExecutor::begin(bool is_recorded) {
  if (!is_recorded) return {};
  const Nanoseconds now = context_.now();
  if (latest_end_) return {.issued_ns = now, .event = latest_end_, .is_end_of_other = true};
  return {.issued_ns = now, .event = gpu_.events().record(stream_, Timing::measured)};
}

// Gives cuBLAS a workspace, because it must not allocate while a graph is captured. If there is no room for one, cuBLAS
// allocates its own.
void GpuExecutor::open_blas() {
  blas_ = gpu_.handles().take_blas();
  check(cublasSetStream(blas_, stream_), "cublasSetStream", text_);
  blas_workspace_ = gpu_.memory()->take(kBlasWorkspaceBytes);
  if (blas_workspace_ == nullptr) return;
  check(cublasSetWorkspace(blas_, blas_workspace_, kBlasWorkspaceBytes), "cublasSetWorkspace", text_);
}

// Takes less if there is no room; sums then have fewer parts, and fewer rows are sorted together.
void GpuExecutor::take_scratch() {
  constexpr std::size_t kLeast = 1 << 10;
  for (std::size_t bytes = kScratchBytes; scratch_.at == nullptr && bytes >= kLeast; bytes /= 4) {
    scratch_ = {.at = gpu_.memory()->take(bytes), .bytes = bytes};
  }
}

void GpuExecutor::execute(const Op& op) {
  if (const auto* host = std::get_if<kernel::HostFunction>(&op.kernel)) {
    drain();
    host->call();
    return;
  }
  check_operands(op.kernel, gpu_.ordinal());
  if (needs_blas(op.kernel) && blas_ == nullptr) open_blas();
  if (needs_scratch(op.kernel) && scratch_.at == nullptr) take_scratch();
  launch({.stream = stream_, .blas = blas_, .fault = fault_, .scratch = scratch_}, op);
}

void GpuExecutor::copy(const Tensor& to, const Tensor& from) {
  copy_memory(to.data(), place_of(to), from.data(), place_of(from), to.size_bytes(), stream_, text_);
}

void GpuExecutor::note_time() {
  if (noted_time_ == nullptr) noted_time_ = gpu_.memory()->take(kTimeBytes);
  if (noted_time_ == nullptr) throw RunError(text_ + ": no memory for the time of an op that is held back");
  launch_note_time(stream_, noted_time_);
}

void GpuExecutor::hold_back(double factor) {
  launch_hold_back(stream_, noted_time_, factor);
  check(cudaGetLastError(), "the kernel that holds an op back", text_);
}

void GpuExecutor::end(const WorkStart& start, std::optional<Record> record, KeepAlive keep_alive) {
  const bool is_recorded = record.has_value();
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({record, start, nullptr, std::move(keep_alive)});
    waiting = pending_.size();
  }
  latest_end_.reset();
  if (is_recorded) {
    latest_end_ = gpu_.events().record(stream_, Timing::measured);
    note_end(latest_end_);
  } else if (++since_marked_ >= kMarkEvery) {
    mark();
  }
  if (++since_settled_ % kSettleEvery == 0) settle();
  if (waiting >= kMostPending) drain();
}

std::shared_ptr<GpuEvent> GpuExecutor::mark() {
  auto event = gpu_.events().record(stream_, Timing::none);
  note_end(event);
  return event;
}

void GpuExecutor::note_end(const std::shared_ptr<GpuEvent>& event) {
  since_marked_ = 0;
  const std::lock_guard lock(mutex_);
  for (auto latest = pending_.rbegin(); latest != pending_.rend() && !latest->end; ++latest) latest->end = event;
}

void GpuExecutor::wait(const GpuEvent& event) {
  latest_end_.reset();  // the wait does not count as part of the next operation
  check(cudaStreamWaitEvent(stream_, event.handle(), 0), "cudaStreamWaitEvent", text_);
}

void GpuExecutor::drain() {
  watch_.wait(mark()->handle(), context_.control, text_);
  settle();
}

std::size_t GpuExecutor::settle() {
  const std::lock_guard lock(mutex_);
  note_done(count_done());
  return pending_.size();
}

// The operations of a stream end in order, so the newest is asked first, and then a binary search follows.
std::size_t GpuExecutor::count_done() {
  const auto is_done = [](const Pending& pending) {
    return pending.end && query(pending.end->handle()) == cudaSuccess;
  };
  if (pending_.empty() || is_done(pending_.back())) return pending_.size();
  const auto first = std::partition_point(pending_.begin(), pending_.end() - 1, is_done);
  return static_cast<std::size_t>(first - pending_.begin());
}

void GpuExecutor::note_done(std::size_t count) {
  if (count == 0) return;
  const Nanoseconds now = context_.now();
  gpu_.clock().refresh(pending_[count - 1].record ? pending_[count - 1].end : nullptr);
  for (; count > 0; --count) {
    Pending& first = pending_.front();
    if (first.record) done_.push_back({*first.record, std::move(first.start), std::move(first.end), now});
    pending_.pop_front();
  }
  check_fault();
}

// Reports what a kernel found wrong. A kernel stores the kind before the other fields; all are there once the stream is
// empty.
void GpuExecutor::check_fault() {
  if (has_reported_fault_ || static_cast<volatile const int&>(fault_->kind) == Fault::none) return;
  has_reported_fault_ = true;
  ends_within(stream_, watch_.timeout_s());
  const std::string message = fmt::format("{}: {}", text_, fault_text(*fault_));
  worker_.fail(fault_->kind == Fault::row ? std::make_exception_ptr(InvalidArgumentError(message))
                                          : std::make_exception_ptr(RunError(message)));
}

void GpuExecutor::read_times(Done& done) {
  const Nanoseconds begin = context_.begin_ns();
  const GpuClock::Interval times = gpu_.clock().times_of({.start = *done.start.event,
                                                          .end = *done.end,
                                                          .issued_ns = begin + done.start.issued_ns,
                                                          .seen_ns = begin + done.seen_ns,
                                                          .follows_another = done.start.is_end_of_other});
  done.record.start_ns = times.start_ns - begin;
  done.record.end_ns = times.end_ns - begin;
  // The clock may have been corrected since the previous operation was read; neighbours must still touch.
  if (done.start.is_end_of_other && done.start.event == last_end_) {
    done.record.start_ns = std::max(last_end_ns_, done.start.issued_ns);
    done.record.end_ns = std::max(done.record.end_ns, done.record.start_ns);
  }
  last_end_ = done.end;
  last_end_ns_ = done.record.end_ns;
}

bool GpuExecutor::tidy() {
  constexpr int kAtOnce = 4;
  settle();
  for (int i = 0; i < kAtOnce; ++i) {
    std::optional<Done> done;
    {
      const std::lock_guard lock(mutex_);
      if (done_.empty()) return false;
      done = std::move(done_.front());
      done_.pop_front();
    }
    read_times(*done);
    log_.add(done->record);
  }
  return true;
}

void GpuExecutor::finish(std::vector<Record>& records) {
  if (!watch_.outlasts(stream_, has_failed())) return abandon();
  if (query(stream_) == cudaSuccess) {
    const std::lock_guard lock(mutex_);
    note_done(pending_.size());
  }
  if (worker_.has_failed()) return;
  while (tidy()) {
  }
  log_.move_to(records);
}

// Leaks what a hanging GPU may still use, so that its memory is not reused until the process ends.
void GpuExecutor::abandon() {
  is_abandoned_ = true;
  gpu_.note_hang();
  worker_.fail(std::make_exception_ptr(RunError(
      fmt::format("{}: the GPU has not ended its work in {} s, the watchdog's timeout", text_, watch_.timeout_s()))));
  const std::lock_guard lock(mutex_);
  new std::deque<Pending>(std::move(pending_));
}

}  // namespace tandem::cuda
