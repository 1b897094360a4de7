#include "engine/cuda/launch_graphs.h"

#include "engine/cuda/cuda_error.h"
#include "engine/cuda/launch_turn.h"

namespace tandem::cuda {
namespace {

// Owns a captured graph, which is needed until it is instantiated.
class Graph {
 public:
  Graph() = default;
  ~Graph() {
    if (handle_ != nullptr) cudaGraphDestroy(handle_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  cudaGraph_t* out() { return &handle_; }
  cudaGraph_t handle() const { return handle_; }

 private:
  cudaGraph_t handle_ = nullptr;
};

}  // namespace

LaunchGraphs::~LaunchGraphs() {
  forget_all();
}

void LaunchGraphs::forget_all() {
  for (const auto& [key, graph] : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  graphs_.clear();
}

void LaunchGraphs::launch(const std::string& key, const std::function<void()>& issue) {
  if (graphs_.size() >= kMostGraphs) forget_all();
  const auto [entry, is_new] = graphs_.try_emplace(key, nullptr);
  if (is_new) return issue();
  if (entry->second == nullptr) entry->second = capture(issue);
  check(cudaGraphLaunch(entry->second, stream_), "cudaGraphLaunch");
}

// Captures in thread-local mode, so that other threads may make calls that are forbidden during a capture.
cudaGraphExec_t LaunchGraphs::capture(const std::function<void()>& issue) const {
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  Graph graph;
  try {
    issue();
  } catch (...) {
    cudaStreamEndCapture(stream_, graph.out());  // the first error is the one to tell
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream_, graph.out()), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const LaunchTurn turn;
  check(cudaGraphInstantiate(&executable, graph.handle(), 0), "cudaGraphInstantiate");
  return executable;
}

}  // namespace tandem::cuda
