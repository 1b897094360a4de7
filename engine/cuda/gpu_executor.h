// Executes work on a GPU: issues it to a CUDA stream and times it by events, which are read when there is nothing to
// issue.
//
// The operands of an operation are kept alive until the GPU has finished it, so that memory goes back to its pool in
// stream order. Every operation has an event before it and one after it; neighbours share the one between them.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "engine/cuda/cuda_kernels.h"
#include "engine/cuda/gpu_watch.h"
#include "engine/cuda/op_executor.h"
#include "engine/threads/record_log.h"
#include "engine/threads/run_context.h"

namespace tandem::cuda {

class GpuExecutor final : public OpExecutor {
 public:
  // `with_graphs` lets repeated launches be launched as graphs.
  GpuExecutor(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Gpu& gpu, StreamUse use,
              std::string text, bool with_graphs);
  ~GpuExecutor() override;
  GpuExecutor(const GpuExecutor&) = delete;
  GpuExecutor& operator=(const GpuExecutor&) = delete;

  Gpu* gpu() override { return &gpu_; }
  void use_on_this_thread() override;
  WorkStart begin() override;
  void execute(const Op& op) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void end(const WorkStart& start, Record record, KeepAlive keep_alive) override;
  std::shared_ptr<GpuEvent> mark() override { return gpu_.events().record(stream_, Timing::none); }
  void wait(const GpuEvent& event) override;
  void drain() override;
  bool tidy() override;
  std::size_t settle() override;
  void finish(std::vector<Record>& records) override;
  LaunchGraphs* graphs() override { return graphs_ ? &*graphs_ : nullptr; }
  cudaStream_t gpu_stream() const override { return stream_; }

 private:
  // Work that was issued and is not known to be done.
  struct Pending {
    Record record;
    WorkStart start;
    std::shared_ptr<GpuEvent> end;
    KeepAlive keep_alive;
  };
  // Work that was done before `seen_ns`; its times are not read yet.
  struct Done {
    Record record;
    WorkStart start;
    std::shared_ptr<GpuEvent> end;
    Nanoseconds seen_ns = 0;
  };
  void release() noexcept;
  std::size_t count_done();
  void abandon();
  bool has_failed() const { return worker_.has_failed() || context_.control.is_stopped(); }
  void start_clock();
  void open_blas();
  void take_scratch();
  Nanoseconds time_of(const GpuEvent& event) const;  // on the host's clock
  void read_times(Done& done);
  void check_fault();

  threads::RunContext& context_;
  threads::WorkerState& worker_;
  GpuWatch& watch_;
  Gpu& gpu_;
  const StreamUse use_;
  const std::string text_;
  const cudaStream_t stream_;
  cublasHandle_t blas_{};  // taken for the first product
  void* blas_workspace_ = nullptr;
  Scratch scratch_;
  std::optional<LaunchGraphs> graphs_;
  Fault* fault_ = nullptr;                // in pinned memory
  std::shared_ptr<GpuEvent> latest_end_;  // of an operation that nothing but another operation may follow; else null
  std::shared_ptr<GpuEvent> clock_event_;
  Nanoseconds clock_ns_ = 0;  // when the host saw that event
  int since_settled_ = 0;
  bool is_abandoned_ = false;
  threads::RecordLog log_;

  std::mutex mutex_;  // guards the next three
  std::deque<Pending> pending_;
  std::deque<Done> done_;
  bool has_reported_fault_ = false;
};

}  // namespace tandem::cuda
