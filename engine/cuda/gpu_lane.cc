#include "engine/cuda/gpu_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "engine/cuda/cuda_error.h"

namespace tandem::cuda {
namespace {

constexpr int kSettleEvery = 64;  // operations: what is done must not hold its memory for long
constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS asks for on Hopper
constexpr std::size_t kMostPending = 1 << 14;                       // beyond it the host waits for the GPU

}  // namespace

GpuLane::GpuLane(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu,
                 std::string text, bool with_graphs)
    : context_(context), worker_(worker), watch_(watch), gpu_(gpu), text_(std::move(text)) {
  const UseGpu use(gpu_.ordinal());
  try {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", text_);
    void* fault = nullptr;
    check(cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc", text_);
    fault_ = new (fault) Fault;
    if (with_graphs) graphs_.emplace(stream_);
    start_clock();
  } catch (...) {
    release();
    throw;
  }
}

GpuLane::~GpuLane() {
  release();
}

// On a task's thread or the caller's of the run: whose current GPU it leaves as it was.
void GpuLane::release() noexcept {
  if (is_abandoned_) return;
  int former = 0;
  cudaGetDevice(&former);
  cudaSetDevice(gpu_.ordinal());
  graphs_.reset();
  if (blas_ != nullptr) cublasDestroy(blas_);
  if (blas_workspace_ != nullptr) gpu_.memory()->give_back(blas_workspace_, kBlasWorkspaceBytes);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  if (fault_ != nullptr) cudaFreeHost(fault_);
  cudaSetDevice(former);
}

// Three times, and the quickest counts: the host sees an event some microseconds late.
void GpuLane::start_clock() {
  Nanoseconds least = 0;
  for (int i = 0; i < 3; ++i) {
    const Nanoseconds before = context_.now();
    auto event = gpu_.events().record(stream_);
    if (watch_.wait(event->handle(), context_.control, text_) == GpuWatch::Outcome::stopped) {
      context_.control.throw_stopped();
    }
    const Nanoseconds after = context_.now();
    if (clock_event_ && after - before >= least) continue;
    least = after - before;
    clock_event_ = std::move(event);
    clock_ns_ = after;
  }
}

void GpuLane::use_on_this_thread() {
  check(cudaSetDevice(gpu_.ordinal()), "cudaSetDevice", gpu_.text());
}

Beginning GpuLane::begin() {
  return {.at_ns = context_.now(), .event = gpu_.events().record(stream_)};
}

// With memory of our own: what cuBLAS would allocate itself may not be allocated while a graph is captured. Without
// room for it cuBLAS is left to itself.
void GpuLane::open_blas() {
  check(cublasCreate(&blas_), "cublasCreate", text_);
  check(cublasSetStream(blas_, stream_), "cublasSetStream", text_);
  blas_workspace_ = gpu_.memory()->take(kBlasWorkspaceBytes);
  if (blas_workspace_ == nullptr) return;
  check(cublasSetWorkspace(blas_, blas_workspace_, kBlasWorkspaceBytes), "cublasSetWorkspace", text_);
}

void GpuLane::execute(const Op& op) {
  if (const auto* host = std::get_if<kernel::HostFunction>(&op.kernel)) {
    drain();
    host->call();
    return;
  }
  check_operands(op.kernel, gpu_.ordinal());
  if (std::holds_alternative<kernel::Gemm>(op.kernel) && blas_ == nullptr) open_blas();
  launch({.stream = stream_, .blas = blas_, .fault = fault_}, op);
}

// Peers that reach each other are copied between directly, others through the host: CUDA knows.
void GpuLane::copy(const Tensor& to, const Tensor& from) {
  const int to_place = place_of(to), from_place = place_of(from);
  if (to_place >= 0 && from_place >= 0 && to_place != from_place) {
    check(cudaMemcpyPeerAsync(to.data(), to_place, from.data(), from_place, to.size_bytes(), stream_),
          "cudaMemcpyPeerAsync", text_);
  } else {
    check(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDefault, stream_), "cudaMemcpyAsync",
          text_);
  }
}

void GpuLane::end(const Beginning& beginning, Record record, Kept kept) {
  auto end = gpu_.events().record(stream_);
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({std::move(record), beginning, std::move(end), std::move(kept)});
    waiting = pending_.size();
  }
  if (++since_settled_ % kSettleEvery == 0) settle();
  if (waiting >= kMostPending) drain();
}

void GpuLane::wait(const GpuEvent& event) {
  check(cudaStreamWaitEvent(stream_, event.handle(), 0), "cudaStreamWaitEvent", text_);
}

void GpuLane::drain() {
  watch_.wait(mark()->handle(), context_.control, text_);
  settle();
}

void GpuLane::settle() {
  const std::lock_guard lock(mutex_);
  bool has_settled = false;
  while (!pending_.empty() && cudaEventQuery(pending_.front().end->handle()) == cudaSuccess) {
    Pending& first = pending_.front();
    done_.push_back({std::move(first.record), std::move(first.beginning), std::move(first.end), context_.now()});
    pending_.pop_front();
    has_settled = true;
  }
  if (has_settled) check_fault();
}

// The kernel's own fields follow the kind: all are there once the stream is empty.
void GpuLane::check_fault() {
  if (has_reported_fault_ || static_cast<volatile const int&>(fault_->kind) == Fault::none) return;
  has_reported_fault_ = true;
  cudaStreamSynchronize(stream_);
  worker_.fail(std::make_exception_ptr(RunError(fmt::format("{}: {}", text_, fault_text(*fault_)))));
}

Nanoseconds GpuLane::time_of(const GpuEvent& event) const {
  float elapsed_ms = 0;
  check(cudaEventElapsedTime(&elapsed_ms, clock_event_->handle(), event.handle()), "cudaEventElapsedTime", text_);
  return clock_ns_ + static_cast<Nanoseconds>(static_cast<double>(elapsed_ms) * 1e6);
}

// The two clocks agree to some microseconds only. Work begins after it was issued and ends before it was seen to be
// done: where the GPU's clock says otherwise, it is set right, so that what an op took stays as the GPU has measured
// it. A float of milliseconds is fine enough near its zero alone, which therefore follows.
void GpuLane::read_times(Done& done) {
  constexpr Nanoseconds kClockSpan = 1'000'000'000;
  Nanoseconds start = time_of(*done.beginning.event), end = time_of(*done.end);
  Nanoseconds correction = std::min<Nanoseconds>(0, done.seen_ns - end);
  if (correction == 0) correction = std::clamp<Nanoseconds>(done.beginning.at_ns - start, 0, done.seen_ns - end);
  clock_ns_ += correction;
  start += correction;
  end += correction;
  done.record.start_ns = std::max(start, done.beginning.at_ns);
  done.record.end_ns = std::max(end, done.record.start_ns);
  if (end - clock_ns_ > kClockSpan) {
    clock_event_ = done.end;
    clock_ns_ = end;
  }
}

bool GpuLane::tidy() {
  constexpr int kAtOnce = 16;
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
    log_.add(std::move(done->record));
  }
  return true;
}

void GpuLane::finish(std::vector<Record>& records) {
  if (!watch_.outlasts(stream_, has_failed())) return abandon();
  settle();
  if (worker_.has_failed()) return;
  while (tidy()) {
  }
  log_.move_to(records);
}

// A GPU that hangs may still work on all this: it goes with the process, and nobody takes its memory for something
// else.
void GpuLane::abandon() {
  is_abandoned_ = true;
  worker_.fail(std::make_exception_ptr(RunError(
      fmt::format("{}: the GPU has not ended its work in {} s, the watchdog's limit", text_, watch_.limit_s()))));
  const std::lock_guard lock(mutex_);
  new std::deque<Pending>(std::move(pending_));
}

}  // namespace tandem::cuda
