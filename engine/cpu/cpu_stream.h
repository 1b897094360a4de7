// A stream of the cpu engine: its thread does the work itself.
#pragma once

#include <vector>

#include "engine/cpu/cpu_event.h"
#include "engine/threads/queued_stream.h"
#include "engine/threads/record_log.h"

namespace tandem::cpu {

class CpuStream final : public threads::QueuedStream<CpuStream, CpuEvent> {
 public:
  CpuStream(threads::RunContext& context, threads::WorkerState& worker, Device& device, int index)
      : QueuedStream(context, worker, device, index) {
    start();
  }
  ~CpuStream() override { end_thread(); }
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  void synchronize() override;

  // Works off what has been issued (or drops it, in a run that was stopped), then ends the thread.
  void finish() { end_thread(); }
  void take_records(std::vector<Record>& records) { log_.move_to(records); }  // after finish()

 private:
  void perform(Op& op, int step) override;
  void perform(Copy& copy, int step) override;
  void perform(Mark& mark, int step) override;
  void perform(WaitFor& wait, int step) override;
  void perform(Collective& collective, int step) override;
  void log(Record record, Nanoseconds start, Nanoseconds end);

  threads::RecordLog log_;
};

}  // namespace tandem::cpu
