// Launches a repeated series of launches as one CUDA graph.
//
// The first time a series is launched as it is, the second time it is captured into a graph, and from then on the graph
// is launched. Two series are the same when their keys are equal.
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

  // `issue` issues the launches of the series to the stream, and nothing else. Throws RunError and what `issue` throws.
  void launch(const std::string& key, const std::function<void()>& issue);

 private:
  // A program that never repeats itself must not fill the memory: beyond this number all graphs are forgotten.
  static constexpr std::size_t kMostGraphs = 1024;

  cudaGraphExec_t capture(const std::function<void()>& issue) const;
  void forget_all();

  const cudaStream_t stream_;
  std::unordered_map<std::string, cudaGraphExec_t> graphs_;  // null for a series seen once
};

}  // namespace tandem::cuda
