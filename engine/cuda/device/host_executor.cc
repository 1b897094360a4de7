#include "engine/cuda/device/host_executor.h"

#include <cstring>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/cuda_kernels.h"
#include "engine/kernels/kernels.h"

namespace tandem::cuda {

HostExecutor::HostExecutor(threads::RunContext& context, GpuWatch& watch, Gpu& gpu, std::string text)
    : context_(context), watch_(watch), gpu_(gpu), text_(std::move(text)) {
  copies_ = gpu_.handles().take_stream(StreamUse::communication);
}

// Leaks what a hanging GPU may still copy.
HostExecutor::~HostExecutor() {
  if (!watch_.outlasts(copies_, context_.control.is_stopped())) {
    gpu_.note_hang();
    new KeepAlive(std::move(under_way_));  // NOLINT(bugprone-unhandled-exception-at-new): without memory, the end
    return;
  }
  gpu_.handles().give_back(copies_, StreamUse::communication);
}

void HostExecutor::use_on_this_thread() {
  check(cudaSetDevice(gpu_.ordinal()), "cudaSetDevice", gpu_.text());
}

void HostExecutor::execute(const Op& op) {
  check_operands(op.kernel, kHostPlace);
  tandem::execute(op.kernel);
}

void HostExecutor::copy(const Tensor& to, const Tensor& from) {
  if (place_of(to) == kHostPlace && place_of(from) == kHostPlace) {
    std::memmove(to.data(), from.data(), to.size_bytes());
    return;
  }
  copy_memory(to.data(), place_of(to), from.data(), place_of(from), to.size_bytes(), copies_, text_);
  under_way_ = {.kernel = {}, .first = to, .second = from};
  const auto done = gpu_.events().record(copies_, Timing::none);
  if (watch_.wait(done->handle(), context_.control, text_) == GpuWatch::Outcome::complete) under_way_ = {};
}

void HostExecutor::end(const WorkStart& start, std::optional<Record> record, KeepAlive /*keep_alive*/) {
  if (!record) return;
  record->start_ns = start.issued_ns;
  record->end_ns = context_.now();
  log_.add(*record);
}

void HostExecutor::wait(const GpuEvent& event) {
  watch_.wait(event.handle(), context_.control, text_);
}

}  // namespace tandem::cuda
