// Emulated streams, events and graphs: what is behind CUDA's handles, and how work gets into them.
//
// A stream is a queue with a thread, which works on when the stream is destroyed. A graph has a branch for each stream
// that was captured, and events between branches; its branches run on threads of their own.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/gpus.h"

namespace tandem::emulation {

class Queue {
 public:
  static std::shared_ptr<Queue> on(int gpu);
  void push(Work work);
  void wait();  // for all work so far
  bool is_done();
  void close();  // the thread ends with the work

 private:
  explicit Queue(Gpu& gpu) : gpu_(gpu) {}
  void work_off();

  Gpu& gpu_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  std::uint64_t pushed_ = 0, done_ = 0;
  bool is_closed_ = false;
};

class Capture;

// One recording of an event.
struct Mark {
  std::atomic<bool> is_done{false};
  std::chrono::steady_clock::time_point at;
  std::shared_ptr<Capture> capture;  // then it is a node of its graph, and is never done
  std::size_t node = 0;
};

class EventState {
 public:
  std::shared_ptr<Mark> mark();  // null: never recorded
  void set(std::shared_ptr<Mark> mark);

 private:
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

struct Graph {
  struct Node {
    std::size_t branch;
    Work work;
    std::vector<std::size_t> after;
  };
  std::vector<int> branches;  // the GPU of each
  std::vector<Node> nodes;
  std::mutex mutex;  // held while it runs: never twice at a time
};
cudaError_t run(Graph& graph);

// To the stream, or to the graph that it is captured to.
cudaError_t issue(cudaStream_t stream, Work work);
// The stream's work, event after event: an error that is not allowed in a capture ends the capture.
cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool is_external);
cudaError_t wait(cudaStream_t stream, cudaEvent_t event);

bool is_captured(cudaStream_t stream);
// cudaErrorStreamCaptureUnsupported where the call could disturb a capture, which is void then.
cudaError_t may_disturb(cudaStream_t stream = nullptr);

}  // namespace tandem::emulation

struct CUstream_st {
  explicit CUstream_st(int on_gpu, int with_priority = 0)
      : gpu(on_gpu), priority(with_priority), queue(tandem::emulation::Queue::on(on_gpu)) {}

  const int gpu, priority;
  const std::shared_ptr<tandem::emulation::Queue> queue;
  std::shared_ptr<tandem::emulation::Capture> capture;  // of the mutex of all captures, with the branch
  std::size_t branch = 0;
};

struct CUevent_st {
  int gpu = 0;
  bool has_time = true;
  std::shared_ptr<tandem::emulation::EventState> state = std::make_shared<tandem::emulation::EventState>();
};

struct CUgraph_st {
  std::shared_ptr<tandem::emulation::Graph> graph;
  std::atomic<bool> is_on_gpu{false};
};

struct CUgraphExec_st {
  std::shared_ptr<tandem::emulation::Graph> graph;
  std::atomic<bool> is_on_gpu{false};
};
