// A stream of the cpu engine: its thread executes the work itself.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <vector>

#include "engine/cpu/cpu_event.h"
#include "engine/record_log.h"
#include "engine/threads/queued_stream.h"

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

  // Executes what has been issued (drops it in a stopped run), then ends the thread.
  void finish() { end_thread(); }
  void take_records(std::vector<Record>& records) { log_.move_to(records); }  // after finish()

 private:
  void execute(Op& op, int step) override;
  void execute(Copy& copy, int step) override;
  void execute(Mark& mark, int step) override;
  void execute(WaitFor& wait, int step) override;
  void execute(Collective& collective, int step) override;
  // Waits until work that began at `start` has taken `factor` times as long, and what slow_down() adds to that.
  void hold_back(Nanoseconds start, double factor) const;
  bool tells_loss(const CpuEvent& event) const override { return event.loss() != nullptr; }
  void note_loss(int issuer, const std::exception_ptr& loss);
  void log(Record record, Nanoseconds start, Nanoseconds end);

  RecordLog log_;
  std::map<int, std::exception_ptr> losses_;  // of values, by who has issued the copy; only the thread uses it
  std::atomic<bool> has_loss_{false};         // of values for tasks of this process
};

}  // namespace tandem::cpu
