// The graph that some streams are captured to at present.
//
// Threads: all of its state, and which stream belongs to which capture, is of captures_mutex().
#pragma once

#include <set>

#include "tests/cuda_emulation/streams.h"

namespace tandem::emulation {

std::mutex& captures_mutex();

class Capture {
 public:
  Capture(cudaStream_t origin, cudaStreamCaptureMode mode) : origin_(origin), mode_(mode) { join(origin); }

  void join(cudaStream_t stream);
  std::size_t add(cudaStream_t stream, Work work, std::vector<std::size_t> after = {});
  // From the thread that it began in, unless relaxed. All streams leave it.
  cudaError_t end(cudaStream_t stream, std::shared_ptr<Graph>& graph);

  void spoil() { is_spoilt_ = true; }
  bool is_spoilt() const { return is_spoilt_; }
  bool begun_here() const { return thread_ == std::this_thread::get_id(); }
  cudaStreamCaptureMode mode() const { return mode_; }

 private:
  bool is_unjoined() const;

  const cudaStream_t origin_;
  const cudaStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::set<cudaStream_t> streams_;
  bool is_spoilt_ = false;
};

// Makes `capture` one of those that other threads' calls must not disturb.
cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t end_capture(cudaStream_t stream, std::shared_ptr<Graph>& graph);
cudaStreamCaptureStatus capture_status(cudaStream_t stream);
cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode);  // of the calling thread

}  // namespace tandem::emulation
