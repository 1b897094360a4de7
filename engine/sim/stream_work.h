// The operations of a stream in which no other device takes part: ops, copies, and the two ends of an event.
#pragma once

#include <boost/pool/pool.hpp>
#include <memory>
#include <vector>

#include "engine/sim/sim_stream.h"

namespace tandem::sim {

class SimEvent : public EventState {
 public:
  explicit SimEvent(SimDevice& device) : device_(device) {}
  bool is_complete() const override { return is_complete_; }
  void synchronize() override;

  // Called in the kernel.
  void complete();
  void finish_head_when_complete(SimStream& stream) { streams_.push_back(&stream); }
  std::string text() const;

 private:
  SimDevice& device_;  // on which it was recorded
  bool is_complete_ = false;
  WaitList waiting_;
  std::vector<SimStream*> streams_;
};

// What an op holds until it ends: its kernel, in runs with values and where an operand has a lease, which ends with the
// op. Other operands have nothing that the op would need.
class OpNeeds {
 public:
  OpNeeds() = default;
  OpNeeds(Kernel&& kernel, bool is_executed);
  void execute() const;  // only where `is_executed`
  bool is_nothing() const { return kernel_ == nullptr; }

 private:
  std::unique_ptr<Kernel> kernel_;
};

// Learns of the records of some work, at their ends.
class RecordListener {
 public:
  virtual ~RecordListener() = default;
  virtual void ended(const Record& record) = 0;
};

class OpWork : public StreamWork {
 public:
  // The memory of a run's ops, of which there may be millions. It exists as long as any of them, and there is one at a
  // time in a process.
  class Memory {
   public:
    Memory() : pool_(sizeof(OpWork)) { current = this; }
    ~Memory() { current = nullptr; }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

   private:
    friend class OpWork;
    static inline Memory* current = nullptr;
    boost::pool<> pool_;
  };
  static void* operator new(std::size_t size);
  static void operator delete(void* work);

  OpWork(OpNeeds needs, double seconds, double alone_s, Record record, RecordListener* listener = nullptr)
      : needs_(std::move(needs)), seconds_(seconds), alone_s_(alone_s), record_(record), listener_(listener) {}
  void start(SimStream& stream) override;
  std::string text() const override { return "op '" + record_.name.text() + "'"; }
  bool needs_core() const override { return true; }

 private:
  void end(SimStream& stream);
  void take_effect(const SimDevice& device) const;
  OpNeeds needs_;
  double seconds_, alone_s_;
  Record record_;
  RecordListener* listener_;  // null: none
};

class CopyWork : public StreamWork {
 public:
  // `is_remote`: another worker than the stream's issued it.
  CopyWork(Tensor to, Tensor from, Record record, bool is_remote)
      : to_(std::move(to)), from_(std::move(from)), record_(record), is_remote_(is_remote) {}
  void start(SimStream& stream) override;
  std::string text() const override { return "a copy"; }
  bool needs_core() const override { return true; }

 private:
  void move(SimStream& stream);
  bool call(SimStream& stream);
  void end(SimStream& stream);
  Tensor to_;
  Tensor from_;
  Record record_;
  bool is_remote_;
};

class RecordWork : public StreamWork {
 public:
  explicit RecordWork(std::shared_ptr<SimEvent> event) : event_(std::move(event)) {}
  void start(SimStream& stream) override;
  std::string text() const override { return "an event"; }

 private:
  std::shared_ptr<SimEvent> event_;
};

class WaitWork : public StreamWork {
 public:
  explicit WaitWork(std::shared_ptr<SimEvent> event) : event_(std::move(event)) {}
  void start(SimStream& stream) override;
  std::string text() const override { return event_->text(); }

 private:
  std::shared_ptr<SimEvent> event_;
};

// Moves bytes from one device to another: over the route between their nodes, whose latency passes first unless
// `with_latency` is false, or inside the memory of the node they share, which occupies one of its cores unless it has
// copy engines. Every copy, send and hop of a collective comes through here. Called in the kernel.
void move_bytes(SimDevice& from, SimDevice& to, double bytes, bool with_latency, Simulation::Then then);
// The same for input of a training step: what a worker's CPU loads for a GPU lies in the memory of the processor that
// is nearest to that GPU, because loaders run, and touch their buffers first, on that processor. So does what a GPU
// puts there for a later pass.
void move_input(SimDevice& from, SimDevice& to, double bytes, Simulation::Then then);

}  // namespace tandem::sim
