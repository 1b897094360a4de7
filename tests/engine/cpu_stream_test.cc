// Order and concurrency of streams on the cpu engine.
#include "engine/cpu/cpu_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using testing::ElementsAre;

Op note(std::vector<int>& notes, int value) {
  return op::host_function("note", {}, [&notes, value] { notes.push_back(value); });
}

TEST(CpuStream, WorksInTheOrderOfIssue) {
  std::vector<int> notes;
  run_on_cpu(1, 1, [&](Worker& worker) {
    Stream& stream = worker.cpu().compute_stream();
    for (int i = 0; i < 1000; ++i) stream.launch(note(notes, i));
    stream.synchronize();
    ASSERT_EQ(notes.size(), 1000U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(notes[static_cast<std::size_t>(i)], i);
  });
}

TEST(CpuStream, FinishesWhatAProgramLeavesBehind) {
  std::vector<int> notes;
  run_on_cpu(1, 1, [&](Worker& worker) { worker.cpu().compute_stream().launch(note(notes, 7)); });
  EXPECT_THAT(notes, ElementsAre(7));
}

TEST(CpuStream, TwoRunAtOnce) {
  std::atomic<bool> first{false}, second{false}, met{false};
  run_on_cpu(1, 1, [&](Worker& worker) {
    worker.cpu().stream(0).launch(op::host_function("first", {}, [&] {
      first.store(true);
      met.store(becomes_true(second));
    }));
    worker.cpu().stream(1).launch(op::host_function("second", {}, [&] {
      second.store(true);
      becomes_true(first);
    }));
    worker.cpu().synchronize();
  });
  EXPECT_TRUE(met.load());
}

TEST(CpuStream, IssuingDoesNotWaitForTheWork) {
  std::atomic<bool> may_end{false};
  run_on_cpu(1, 1, [&](Worker& worker) {
    Stream& stream = worker.cpu().compute_stream();
    stream.launch(op::host_function("hold", {}, [&] { EXPECT_TRUE(becomes_true(may_end)); }));
    const Event event = stream.record();
    EXPECT_FALSE(event.is_complete());
    may_end.store(true);
    event.synchronize();
    EXPECT_TRUE(event.is_complete());
  });
}

TEST(CpuStream, EventsOrderStreams) {
  std::vector<int> notes;
  run_on_cpu(1, 2, [&](Worker& worker) {
    Stream& first = worker.devices()[0]->compute_stream();
    Stream& second = worker.devices()[1]->stream(kCommunicationStream);
    for (int i = 0; i < 200; i += 2) {
      first.launch(note(notes, i));
      second.wait(first.record());
      second.launch(note(notes, i + 1));
      first.wait(second.record());
    }
    second.synchronize();
    ASSERT_EQ(notes.size(), 200U);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(notes[static_cast<std::size_t>(i)], i);
  });
}

TEST(CpuStream, ADefaultEventIsComplete) {
  run_on_cpu(1, 1, [](Worker& worker) {
    const Event event;
    EXPECT_TRUE(event.is_complete());
    event.synchronize();
    worker.cpu().compute_stream().wait(event);
    worker.cpu().synchronize();
  });
}

TEST(CpuStream, CopiesBetweenDevicesOfDifferentWorkers) {
  const Timeline timeline = run_on_cpu(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    Device& remote = worker.device({"worker", 1, DeviceType::cpu, 0});
    const Tensor from = worker.cpu().allocate(DType::i32, {3});
    const Tensor to = remote.allocate(DType::i32, {3});
    std::fill(from.values<std::int32_t>().begin(), from.values<std::int32_t>().end(), 5);
    worker.begin_step(4);
    remote.stream(kCommunicationStream).copy(to, from, Category::input);
    remote.synchronize();
    worker.end_step();
    EXPECT_THAT(to.values<std::int32_t>(), ElementsAre(5, 5, 5));
  });
  ASSERT_EQ(timeline.records.size(), 2U);
  const Record& copy = timeline.records[1];
  EXPECT_EQ(copy.kind, RecordKind::copy);
  EXPECT_EQ(copy.category, Category::input);
  EXPECT_EQ(copy.bytes, 12);
  EXPECT_EQ(copy.device, 1);
  EXPECT_EQ(copy.worker, 1) << "the worker that owns the device";
  EXPECT_EQ(copy.step, 4) << "the step of the worker that issued it";
  EXPECT_EQ(copy.stream, kCommunicationStream);
}

}  // namespace
}  // namespace tandem
