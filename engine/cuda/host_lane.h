// The host's work: done on the stream's thread, one after the other.
#pragma once

#include <string>

#include "engine/cuda/gpu_watch.h"
#include "engine/cuda/lane.h"
#include "engine/threads/record_log.h"
#include "engine/threads/run_context.h"

namespace tandem::cuda {

class HostLane final : public Lane {
 public:
  // `gpu`: moves what the host copies from and to GPUs.
  HostLane(threads::RunContext& context, GpuWatch& watch, Gpu& gpu, std::string text);
  ~HostLane() override;
  HostLane(const HostLane&) = delete;
  HostLane& operator=(const HostLane&) = delete;

  void use_on_this_thread() override;
  Beginning begin() override { return {.at_ns = context_.now(), .event = nullptr}; }
  void execute(const Op& op) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void end(const Beginning& beginning, Record record, Kept kept) override;
  std::shared_ptr<GpuEvent> mark() override { return nullptr; }
  void wait(const GpuEvent& event) override;
  void drain() override {}
  bool tidy() override { return false; }
  void settle() override {}
  void finish(std::vector<Record>& records) override { log_.move_to(records); }
  cudaStream_t gpu_stream() const override { return nullptr; }

 private:
  threads::RunContext& context_;
  GpuWatch& watch_;
  Gpu& gpu_;
  const std::string text_;
  cudaStream_t copies_{};
  Kept under_way_;  // what a copy works on that has not been waited for to its end
  threads::RecordLog log_;
};

}  // namespace tandem::cuda
