// Executes work on a GPU: issues it to a CUDA stream, and times it by events that it reads when there is nothing to
// issue.
//
// The operands of an operation are kept alive until the GPU has finished it. A recorded operation has a timed event
// before and after it; neighbours share the one between them. Some dozens of unrecorded operations share one plain
// event.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "engine/cuda/device/cuda_kernels.h"
#include "engine/cuda/device/gpu_watch.h"
#include "engine/cuda/device/op_executor.h"
#include "engine/record_log.h"
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
  WorkStart begin(bool is_recorded) override;
  void execute(const Op& op) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void note_time() override;
  void hold_back(double factor) override;
  void end(const WorkStart& start, std::optional<Record> record, KeepAlive keep_alive) override;
  std::shared_ptr<GpuEvent> mark() override;
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
    std::optional<Record> record;
    WorkStart start;
    std::shared_ptr<GpuEvent> end;  // after this work, and maybe more; null until there is one
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
  void note_done(std::size_t count);
  void note_end(const std::shared_ptr<GpuEvent>& event);
  void abandon();
  bool has_failed() const { return worker_.has_failed() || context_.control.is_stopped(); }
  void open_blas();
  void take_scratch();
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
  void* noted_time_ = nullptr;  // taken for the first op that is held back
  std::optional<LaunchGraphs> graphs_;
  Fault* fault_ = nullptr;                // in pinned memory
  std::shared_ptr<GpuEvent> latest_end_;  // of the last operation, if it was recorded and no wait followed; else null
  int since_settled_ = 0, since_marked_ = 0;
  bool is_abandoned_ = false;
  RecordLog log_;
  std::shared_ptr<GpuEvent> last_end_;  // end of the work whose times were read last
  Nanoseconds last_end_ns_ = 0;

  std::mutex mutex_;  // guards the next three
  std::deque<Pending> pending_;
  std::deque<Done> done_;
  bool has_reported_fault_ = false;
};

}  // namespace tandem::cuda
