// The runtime's calls about streams, events and graphs.
#include <algorithm>

#include "tests/cuda_emulation/capture.h"

using namespace tandem::emulation;

namespace {

constexpr int kGreatestPriority = -5;  // as on Hopper

// The end of a call that waits: how the GPU has failed meanwhile.
cudaError_t state_of(int ordinal) {
  return noted(gpu(ordinal).failure);
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (flags != cudaStreamNonBlocking) return noted(cudaErrorNotSupported);  // no legacy stream is emulated
  const Synchronising synchronising(__func__);
  *stream = new CUstream_st(current_gpu(), std::clamp(priority, kGreatestPriority, 0));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const int error = injected(__func__)) return noted(static_cast<cudaError_t>(error));
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (const cudaError_t error = entered(__func__)) return error;
  *least = 0;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return noted(cudaErrorInvalidResourceHandle);
  stream->queue->close();
  const cudaError_t failure = state_of(stream->gpu);
  delete stream;
  return failure;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (const cudaError_t error = may_disturb(stream)) return noted(error);
  stream->queue->wait();
  return state_of(stream->gpu);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (const cudaError_t error = may_disturb(stream)) return noted(error);
  return stream->queue->is_done() ? state_of(stream->gpu) : noted(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  return noted(wait(stream, event));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = entered(__func__)) return error;
  *event = new CUevent_st{.gpu = current_gpu(), .has_time = (flags & cudaEventDisableTiming) == 0};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (const int error = injected(__func__)) return noted(static_cast<cudaError_t>(error));
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return noted(cudaErrorInvalidResourceHandle);
  const cudaError_t failure = state_of(event->gpu);
  delete event;
  return failure;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (event->gpu != stream->gpu) return noted(cudaErrorInvalidResourceHandle);
  count_event(event->has_time);
  return noted(record(event, stream, (flags & cudaEventRecordExternal) != 0));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const int error = injected(__func__)) return noted(static_cast<cudaError_t>(error));
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = entered(__func__, event->gpu)) return error;
  const std::shared_ptr<Mark> mark = event->state->mark();
  if (mark && mark->capture) return noted(cudaErrorCapturedEvent);
  if (const cudaError_t error = may_disturb()) return noted(error);
  return !mark || mark->is_done ? state_of(event->gpu) : noted(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = entered(__func__, event->gpu)) return error;
  const std::shared_ptr<Mark> mark = event->state->mark();
  if (mark && mark->capture) return noted(cudaErrorCapturedEvent);
  if (const cudaError_t error = may_disturb()) return noted(error);
  if (mark) mark->is_done.wait(false);
  return state_of(event->gpu);
}

cudaError_t cudaEventElapsedTime(float* elapsed_ms, cudaEvent_t first, cudaEvent_t second) {
  if (const cudaError_t error = entered(__func__, first->gpu)) return error;
  const std::shared_ptr<Mark> begin = first->state->mark(), end = second->state->mark();
  if (!first->has_time || !second->has_time || first->gpu != second->gpu || !begin || !end || begin->capture ||
      end->capture) {
    return noted(cudaErrorInvalidResourceHandle);
  }
  if (!begin->is_done || !end->is_done) return noted(cudaErrorNotReady);
  const std::chrono::duration<double, std::milli> elapsed = end->at - begin->at;
  *elapsed_ms = static_cast<float>(elapsed.count() * (1 + machine().clock_drift));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  return noted(begin_capture(stream, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  std::shared_ptr<Graph> captured;
  const cudaError_t error = end_capture(stream, captured);
  *graph = captured ? new CUgraph_st{std::move(captured)} : nullptr;
  return noted(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  *status = capture_status(stream);
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = exchange_capture_mode(*mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = entered(__func__)) return error;
  const Synchronising synchronising(__func__);  // a graph's memory, and kernels that are not loaded yet
  *executable = new CUgraphExec_st{.graph = graph->graph};
  return cudaSuccess;
}

// As long as the graphs differ in what their nodes work on only; here: in their number and order.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  if (const cudaError_t error = entered(__func__)) return error;
  const auto branches_of = [](const Graph& nodes) {
    std::vector<std::size_t> branches;
    for (const Graph::Node& node : nodes.nodes) branches.push_back(node.branch);
    return branches;
  };
  if (branches_of(*executable->graph) != branches_of(*graph->graph)) {
    result->result = cudaGraphExecUpdateErrorTopologyChanged;
    return noted(cudaErrorGraphExecUpdateFailure);
  }
  executable->graph = graph->graph;
  return cudaSuccess;
}

// Finds memory on the GPU for the graph, as does the first launch of one that has none.
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  const Synchronising synchronising(__func__);
  executable->is_on_gpu = true;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (is_captured(stream)) return noted(cudaErrorNotSupported);  // no graphs within graphs
  if (!executable->is_on_gpu.exchange(true)) const Synchronising synchronising("the first launch of a graph");
  return noted(issue(stream, {[graph = executable->graph] { return run(*graph); }}));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
