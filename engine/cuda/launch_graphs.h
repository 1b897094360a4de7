// Runs of launches that come again, as one launch: CUDA graphs of what one stream does.
//
// What comes for the first time is launched as it is, what comes again is captured into a graph on the way, and from
// then on the graph is launched. A run of launches is the same when its key is.
//
// Threads: the stream's own.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <unordered_map>

namespace tandem::cuda {

class LaunchGraphs {
 public:
  explicit LaunchGraphs(cudaStream_t stream) : stream_(stream) {}
  ~LaunchGraphs();
  LaunchGraphs(const LaunchGraphs&) = delete;
  LaunchGraphs& operator=(const LaunchGraphs&) = delete;

  // `issue` issues the run's launches to the stream, and nothing else. Throws RunError, and what `issue` throws.
  void launch(const std::string& key, const std::function<void()>& issue);

 private:
  // A program whose runs never repeat must not fill the memory: beyond so many, all are forgotten.
  static constexpr std::size_t kMostGraphs = 1024;

  cudaGraphExec_t capture(const std::function<void()>& issue) const;
  void forget_all();

  const cudaStream_t stream_;
  std::unordered_map<std::string, cudaGraphExec_t> graphs_;  // null: seen once, not captured
};

}  // namespace tandem::cuda
