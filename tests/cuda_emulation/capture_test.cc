// The emulation of graphs itself, and of what CUDA refuses while one is captured.
#include <thread>

#include "tests/cuda_emulation/emulation_fixture.h"

namespace tandem::emulation {
namespace {

class Capture : public Emulation {
 protected:
  void SetUp() override {
    Emulation::SetUp();
    second_ = make_stream(1);
    first_ = make_stream(0);
    block_ = make_ints(first_);
    fork_ = make_event();
    cudaSetDevice(1);
    other_ = make_ints(second_);
    join_ = make_event();
    cudaSetDevice(0);
    cudaStreamSynchronize(first_);
    cudaStreamSynchronize(second_);
  }
  // Both streams, the second between two events.
  cudaGraph_t capture_both() {
    EXPECT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    fill(first_, block_, 7);
    EXPECT_EQ(cudaEventRecord(fork_, first_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(second_, fork_, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeerAsync(other_, 1, block_, 0, 64, second_), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(join_, second_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(first_, join_, 0), cudaSuccess);
    fill(first_, block_, 8);
    cudaGraph_t graph{};
    EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaSuccess);
    return graph;
  }
  cudaError_t end() {
    cudaGraph_t graph{};
    const cudaError_t error = cudaStreamEndCapture(first_, &graph);
    EXPECT_EQ(graph == nullptr, error != cudaSuccess);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  }

  cudaStream_t first_{}, second_{};
  cudaEvent_t fork_{}, join_{};
  int *block_ = nullptr, *other_ = nullptr;
};

TEST_F(Capture, RunsWhenItIsLaunchedAndEveryTime) {
  cudaGraph_t graph = capture_both();
  EXPECT_EQ(first_of(first_, block_), static_cast<int>(0xEEEEEEEE)) << "only captured";
  cudaGraphExec_t executable{};
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) {
    fill(first_, block_, 1);
    ASSERT_EQ(cudaGraphLaunch(executable, first_), cudaSuccess);
    EXPECT_EQ(first_of(first_, block_), 8);
    EXPECT_EQ(first_of(second_, other_), 7);
  }
  cudaGraphExecDestroy(executable);
}

TEST_F(Capture, RefusesWhatWouldWait) {
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaEventRecord(fork_, first_), cudaErrorStreamCaptureInvalidated) << "the capture is void";
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);

  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  void* block = nullptr;
  EXPECT_EQ(cudaHostAlloc(&block, 8, 0), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, IsDisturbedByOtherThreadsOnlyWhenItIsGlobal) {
  const auto query_elsewhere = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaEventQuery(join_); }).join();
    return error;
  };
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(query_elsewhere(), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(query_elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(join_), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(Capture, HasNoLooseEnds) {
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(fork_, first_);
  cudaStreamWaitEvent(second_, fork_, 0);
  EXPECT_EQ(cudaEventQuery(fork_), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);

  ASSERT_EQ(cudaEventRecord(join_, second_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(first_, join_, 0), cudaErrorStreamCaptureIsolation) << "work outside";
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] { elsewhere = end(); }).join();
  EXPECT_EQ(elsewhere, cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(Capture, RecordsExternalEventsWhenItRuns) {
  cudaEvent_t end_event = make_event();
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaEventRecordWithFlags(fork_, first_, cudaEventRecordExternal), cudaSuccess);
  fill(first_, block_, 2);
  ASSERT_EQ(cudaEventRecordWithFlags(end_event, first_, cudaEventRecordExternal), cudaSuccess);
  cudaGraph_t graph{};
  ASSERT_EQ(cudaStreamEndCapture(first_, &graph), cudaSuccess);
  cudaGraphExec_t executable{};
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  float elapsed_ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&elapsed_ms, fork_, end_event), cudaErrorInvalidResourceHandle) << "never recorded";
  ASSERT_EQ(cudaGraphLaunch(executable, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&elapsed_ms, fork_, end_event), cudaSuccess);
  EXPECT_GE(elapsed_ms, 0);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace tandem::emulation
