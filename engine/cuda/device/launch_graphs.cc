#include "engine/cuda/device/launch_graphs.h"

#include <algorithm>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/kernels/launch_turn.h"

namespace tandem::cuda {
namespace {

// Owns a captured graph, which is needed until it is instantiated.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  ~CapturedGraph() {
    if (handle_ != nullptr) cudaGraphDestroy(handle_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  cudaGraph_t* out() { return &handle_; }
  cudaGraph_t handle() const { return handle_; }

 private:
  cudaGraph_t handle_ = nullptr;
};

// Captures in thread-local mode, so that other threads may make calls that are forbidden during a capture.
void capture(CapturedGraph& graph, cudaStream_t stream, const std::function<void()>& issue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    issue();
  } catch (...) {
    cudaStreamEndCapture(stream, graph.out());  // the first error is the one to report
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, graph.out()), "cudaStreamEndCapture");
}

// Returns false if the kernels differ after all, because a library may choose them by alignment.
bool update(cudaGraphExec_t executable, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo result{};
  const cudaError_t error = cudaGraphExecUpdate(executable, graph, &result);
  if (error == cudaErrorGraphExecUpdateFailure) {
    cudaGetLastError();
    return false;
  }
  check(error, "cudaGraphExecUpdate");
  return true;
}

}  // namespace

LaunchGraphs::~LaunchGraphs() {
  forget_all();
}

void LaunchGraphs::forget_all() {
  for (const auto& [shape, graphs] : graphs_) {
    for (const Graph& graph : graphs) cudaGraphExecDestroy(graph.executable);
  }
  graphs_.clear();
  launches_ = 0;
}

void LaunchGraphs::launch(const LaunchSeries& series, const std::function<void()>& issue) {
  ++counts_.series;
  if (launches_ > kMostLaunches || graphs_.size() >= kMostSeries) forget_all();
  const auto [entry, is_new] = graphs_.try_emplace(series.shape);
  if (is_new) return issue();
  Graphs& graphs = entry->second;
  const auto known = std::find_if(graphs.begin(), graphs.end(),
                                  [&](const Graph& graph) { return graph.addresses == series.addresses; });
  if (known == graphs.end()) {
    CapturedGraph captured;
    capture(captured, stream_, issue);
    const LaunchTurn turn;  // also for the first launch, which finds memory on the GPU for the graph
    add(graphs, series, captured.handle());
    launch(graphs.back());
  } else {
    std::rotate(known, known + 1, graphs.end());
    launch(graphs.back());
  }
  ++counts_.as_graphs;
}

void LaunchGraphs::launch(const Graph& graph) const {
  check(cudaGraphLaunch(graph.executable, stream_), "cudaGraphLaunch");
}

void LaunchGraphs::add(Graphs& graphs, const LaunchSeries& series, cudaGraph_t captured) {
  if (graphs.size() == kMostOfShape) {
    std::rotate(graphs.begin(), graphs.begin() + 1, graphs.end());
    if (update(graphs.back().executable, captured)) {
      graphs.back().addresses = series.addresses;
      ++counts_.updated;
      return;
    }
    cudaGraphExecDestroy(graphs.back().executable);
    graphs.pop_back();
    launches_ -= series.launches;
  }
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, captured, 0), "cudaGraphInstantiate");
  graphs.push_back({series.addresses, executable});
  launches_ += series.launches;
  ++counts_.captured;
}

}  // namespace tandem::cuda
