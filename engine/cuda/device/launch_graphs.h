// Issues a repeated series of launches as one CUDA graph.
//
// The first time, a series is launched as it is; the second time, it is captured into a graph; from then on the graph
// is launched. A series that comes with other addresses, because its operands have other memory now, gets a graph for
// these as well. A shape that has kMostOfShape graphs updates the least recently used one, which is cheaper than making
// one.
//
// Threads: the stream's own; the counts are any thread's.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/cuda/device/identity_hash.h"

namespace tandem::cuda {

// Identifies a series. Two series with equal shapes differ in addresses only.
struct LaunchSeries {
  IdentityHash shape, addresses;
  std::size_t launches = 0;
};

// How often series were launched, and how.
struct GraphCounts {
  std::atomic<std::int64_t> series{0}, as_graphs{0}, captured{0}, updated{0};
};

class LaunchGraphs {
 public:
  LaunchGraphs(cudaStream_t stream, GraphCounts& counts) : stream_(stream), counts_(counts) {}
  ~LaunchGraphs();
  LaunchGraphs(const LaunchGraphs&) = delete;
  LaunchGraphs& operator=(const LaunchGraphs&) = delete;

  // `issue` issues the launches of the series to the stream, and nothing else. Throws RunError and what `issue` throws.
  void launch(const LaunchSeries& series, const std::function<void()>& issue);

 private:
  // A program that never repeats itself must not fill the memory: all graphs are forgotten when they have this many
  // launches, or when this many series have been seen.
  static constexpr std::size_t kMostLaunches = std::size_t{1} << 16, kMostSeries = 4096;
  // The graphs that are kept for one shape. A step whose operands alternate between addresses needs one for each.
  static constexpr std::size_t kMostOfShape = 4;

  struct Graph {
    IdentityHash addresses;
    cudaGraphExec_t executable = nullptr;
  };
  using Graphs = std::vector<Graph>;  // the most recently used one last

  // Makes or updates a graph, and puts it last.
  void add(Graphs& graphs, const LaunchSeries& series, cudaGraph_t captured);
  void launch(const Graph& graph) const;
  void forget_all();

  const cudaStream_t stream_;
  GraphCounts& counts_;
  std::unordered_map<IdentityHash, Graphs, IdentityHash::Of> graphs_;  // by shape; empty for a series seen once
  std::size_t launches_ = 0;                                           // in all graphs
};

}  // namespace tandem::cuda
