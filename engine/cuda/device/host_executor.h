// Executes work on the stream's own thread.
#pragma once

#include <string>

#include "engine/cuda/device/gpu_watch.h"
#include "engine/cuda/device/op_executor.h"
#include "engine/record_log.h"
#include "engine/threads/run_context.h"

namespace tandem::cuda {

class HostExecutor final : public OpExecutor {
 public:
  // `gpu` executes the copies between the host and GPUs.
  HostExecutor(threads::RunContext& context, GpuWatch& watch, Gpu& gpu, std::string text);
  ~HostExecutor() override;
  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  Gpu* gpu() override { return nullptr; }
  void use_on_this_thread() override;
  WorkStart begin(bool /*is_recorded*/) override { return {.issued_ns = context_.now(), .event = nullptr}; }
  void execute(const Op& op) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void note_time() override { noted_ns_ = context_.now(); }
  void hold_back(double factor) override { context_.hold_back(noted_ns_, factor); }
  void end(const WorkStart& start, std::optional<Record> record, KeepAlive keep_alive) override;
  std::shared_ptr<GpuEvent> mark() override { return nullptr; }
  void wait(const GpuEvent& event) override;
  void drain() override {}
  bool tidy() override { return false; }
  std::size_t settle() override { return 0; }
  void finish(std::vector<Record>& records) override { log_.move_to(records); }
  cudaStream_t gpu_stream() const override { return nullptr; }

 private:
  threads::RunContext& context_;
  GpuWatch& watch_;
  Gpu& gpu_;
  const std::string text_;
  cudaStream_t copies_{};
  Nanoseconds noted_ns_ = 0;
  KeepAlive under_way_;  // the operands of a copy that has not ended
  RecordLog log_;
};

}  // namespace tandem::cuda
