#include "tests/cuda_emulation/streams.h"

namespace tandem::emulation {
namespace {

// What of a graph is done, once.
class Progress {
 public:
  explicit Progress(std::size_t nodes) : is_done_(nodes) {}

  void wait_for(std::size_t node) const { is_done_[node].wait(false); }
  void finish(std::size_t node) {
    is_done_[node] = true;
    is_done_[node].notify_all();
  }

 private:
  std::vector<std::atomic<bool>> is_done_;
};

void run_branch(const Graph& graph, std::size_t branch, Progress& progress) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Graph::Node& node = graph.nodes[i];
    if (node.branch != branch) continue;
    for (const std::size_t before : node.after) progress.wait_for(before);
    execute(gpu(graph.branches[branch]), node.work);
    progress.finish(i);
  }
}

}  // namespace

// The first branch is the one that the graph was begun on.
cudaError_t run(Graph& graph) {
  const std::lock_guard lock(graph.mutex);
  Progress progress(graph.nodes.size());
  std::vector<std::thread> others;
  for (std::size_t branch = 1; branch < graph.branches.size(); ++branch) {
    others.emplace_back([&, branch] { run_branch(graph, branch, progress); });
  }
  run_branch(graph, 0, progress);
  for (std::thread& other : others) other.join();
  return cudaSuccess;
}

}  // namespace tandem::emulation
