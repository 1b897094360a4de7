#include "tests/cuda_emulation/capture.h"

#include <algorithm>

namespace tandem::emulation {
namespace {

// Of captures_mutex(): those under way.
std::set<std::shared_ptr<Capture>>& captures() {
  static auto& captures = *new std::set<std::shared_ptr<Capture>>;
  return captures;
}

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

bool is_disturbed(const Capture& capture) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed || capture.mode() == cudaStreamCaptureModeRelaxed) return false;
  return capture.begun_here() ||
         (mode_of_thread == cudaStreamCaptureModeGlobal && capture.mode() == cudaStreamCaptureModeGlobal);
}

Work marking(const std::shared_ptr<Mark>& mark) {
  return {[mark] {
            mark->at = std::chrono::steady_clock::now();
            mark->is_done = true;
            mark->is_done.notify_all();
            return cudaSuccess;
          },
          true};
}

// An event outside the graph is recorded anew each time the graph comes by.
Work remarking(std::shared_ptr<EventState> event) {
  return {[event = std::move(event)] {
            auto mark = std::make_shared<Mark>();
            marking(mark).run();
            event->set(std::move(mark));
            return cudaSuccess;
          },
          true};
}

}  // namespace

std::mutex& captures_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

void Capture::join(cudaStream_t stream) {
  stream->branch = graph_->branches.size();
  graph_->branches.push_back(stream->gpu);
  streams_.insert(stream);
}

std::size_t Capture::add(cudaStream_t stream, Work work, std::vector<std::size_t> after) {
  graph_->nodes.push_back({stream->branch, std::move(work), std::move(after)});
  return graph_->nodes.size() - 1;
}

// Whether some branch ends without another having waited for its end.
bool Capture::is_unjoined() const {
  std::vector<bool> is_last(graph_->nodes.size(), false);
  for (std::size_t branch = 0; branch < graph_->branches.size(); ++branch) {
    for (std::size_t node = is_last.size(); node-- > 0;) {
      if (graph_->nodes[node].branch != branch) continue;
      is_last[node] = branch != origin_->branch;
      break;
    }
  }
  for (const Graph::Node& node : graph_->nodes) {
    for (const std::size_t before : node.after) is_last[before] = false;
  }
  return std::find(is_last.begin(), is_last.end(), true) != is_last.end();
}

cudaError_t Capture::end(cudaStream_t stream, std::shared_ptr<Graph>& graph) {
  if (stream != origin_) return cudaErrorStreamCaptureUnmatched;
  if (mode_ != cudaStreamCaptureModeRelaxed && !begun_here()) return cudaErrorStreamCaptureWrongThread;
  const bool is_unjoined = this->is_unjoined();
  for (cudaStream_t member : streams_) member->capture.reset();
  if (is_spoilt_) return cudaErrorStreamCaptureInvalidated;
  if (is_unjoined) return cudaErrorStreamCaptureUnjoined;
  graph = graph_;
  return cudaSuccess;
}

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(captures_mutex());
  if (stream->capture) return cudaErrorIllegalState;
  stream->capture = std::make_shared<Capture>(stream, mode);
  captures().insert(stream->capture);
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t stream, std::shared_ptr<Graph>& graph) {
  const std::lock_guard lock(captures_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  const cudaError_t error = capture->end(stream, graph);
  if (!stream->capture) captures().erase(capture);
  return error;
}

cudaStreamCaptureStatus capture_status(cudaStream_t stream) {
  const std::lock_guard lock(captures_mutex());
  if (!stream->capture) return cudaStreamCaptureStatusNone;
  return stream->capture->is_spoilt() ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode) {
  return std::exchange(mode_of_thread, mode);
}

bool is_captured(cudaStream_t stream) {
  return capture_status(stream) != cudaStreamCaptureStatusNone;
}

cudaError_t may_disturb(cudaStream_t stream) {
  const std::lock_guard lock(captures_mutex());
  cudaError_t error = cudaSuccess;
  for (const auto& capture : captures()) {
    if (!is_disturbed(*capture) && (stream == nullptr || stream->capture != capture)) continue;
    capture->spoil();
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t issue(cudaStream_t stream, Work work) {
  const std::lock_guard lock(captures_mutex());
  if (!stream->capture) {
    stream->queue->push(std::move(work));
    return cudaSuccess;
  }
  if (stream->capture->is_spoilt()) return cudaErrorStreamCaptureInvalidated;
  stream->capture->add(stream, std::move(work));
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool is_external) {
  const std::lock_guard lock(captures_mutex());
  const std::shared_ptr<Capture>& capture = stream->capture;
  if (capture && capture->is_spoilt()) return cudaErrorStreamCaptureInvalidated;
  if (capture && is_external) {
    capture->add(stream, remarking(event->state));
    return cudaSuccess;
  }
  auto mark = std::make_shared<Mark>();
  if (capture) {
    mark->capture = capture;
    mark->node = capture->add(stream, {[] { return cudaSuccess; }});
  } else {
    stream->queue->push(marking(mark));
  }
  event->state->set(std::move(mark));
  return cudaSuccess;
}

cudaError_t wait(cudaStream_t stream, cudaEvent_t event) {
  const std::lock_guard lock(captures_mutex());
  const std::shared_ptr<Mark> mark = event->state->mark();
  if (stream->capture && stream->capture->is_spoilt()) return cudaErrorStreamCaptureInvalidated;
  if (!mark) return cudaSuccess;
  if (!mark->capture && !stream->capture) {
    stream->queue->push({[mark] {
      mark->is_done.wait(false);
      return cudaSuccess;
    }});
    return cudaSuccess;
  }
  if (mark->capture && !stream->capture && captures().contains(mark->capture)) {
    stream->capture = mark->capture;
    stream->capture->join(stream);
  }
  if (mark->capture != stream->capture) {
    if (stream->capture) stream->capture->spoil();
    return cudaErrorStreamCaptureIsolation;
  }
  stream->capture->add(stream, {[] { return cudaSuccess; }}, {mark->node});
  return cudaSuccess;
}

}  // namespace tandem::emulation
