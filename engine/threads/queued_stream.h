// A stream with a thread of its own that executes a queue of work: the part that the streams of all real engines
// share. Derived classes execute the items.
//
// Threads: any may issue; the stream's thread begins with start() and ends with end_thread().
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "engine/kernel_operands.h"
#include "engine/threads/collective_call.h"
#include "engine/threads/local_device.h"
#include "engine/threads/run_context.h"
#include "engine/threads/work_queue.h"
#include "topologies/base/error.h"

namespace tandem::threads {

// Whether work is executed only while its worker has not failed, or always, because others wait for it.
enum class After : bool { success, anything };

// Assigns what this thread issues during the object's life to another process, in `step` of its worker.
class IssuedElsewhere {
 public:
  IssuedElsewhere(int process, int step);
  ~IssuedElsewhere();
  IssuedElsewhere(const IssuedElsewhere&) = delete;
  IssuedElsewhere& operator=(const IssuedElsewhere&) = delete;
};
// Who has issued something: another process, or a family of tasks (task_pool.h) of this one.
constexpr int issuer_of_family(int family) {
  return -1 - family;
}
constexpr bool is_issued_here(int issuer) {
  return issuer < 0;
}

// The part of a stream that does not depend on the type of event.
class StreamBase : public LocalStream {
 public:
  Device& device() const override { return device_; }
  int index() const override { return index_; }

  RunControl& control() { return context_.control; }
  void throw_if_failed() const { worker_.throw_if_failed(); }
  // Somebody gives work to the device, or waits for it. Throws where its worker is lost.
  void note_use(const Device& device) const {
    if (context_.faults) context_.faults->note_use(device.worker());
  }
  void note_use() const override { note_use(device_); }
  std::string text() const;  // "stream 0 of /job:worker/replica:0/task:0/device:CPU:1"

 protected:
  struct Copy {
    Tensor to, from;
    Category category;
    int issuer;
  };
  struct Collective {
    std::shared_ptr<CollectiveCall> call;
    int rank;
    std::optional<double> timeout_s;
  };

  StreamBase(RunContext& context, WorkerState& worker, Device& device, int index);
  ~StreamBase() override = default;

  void start_thread(std::function<void()> body);
  void end_thread();  // after its queue is empty; must be called before the derived class's members go

  // Called for whatever is issued. The lock of begin_issue() is held until the work is in the queue; meanwhile lend()
  // turns each operand into a handle for work under way.
  virtual std::unique_lock<std::mutex> begin_issue() { return {}; }
  virtual void lend(Tensor& operand) { operand.lend(); }

  // Throws UsageError for an operand in another process, which only copies can reach.
  void check_is_here(Op& op) const;
  // Work belongs to the step of the worker that issues it, which need not own the device.
  int step_of_caller() const;
  // Fails the worker if it is lost by now, on purpose. Returns whether it is.
  bool is_lost() const;
  double slowdown_at(Nanoseconds now, int step) const;  // of an op that begins then, on purpose
  static int issuer();                                  // for whom the calling thread issues
  Record make_record(RecordKind kind, Category category, Name name, int step) const;
  Record make_record(const Collective& collective, int step) const;

  // Calls `work` unless the run was stopped, and notes its failure under `name`. Returns whether it succeeded.
  template <typename Work>
  bool attempt(std::string_view name, After after, Work&& work);
  // Executes this rank's part of a collective. Returns false when the run was stopped first.
  bool take_part(const Collective& collective);

  RunContext& context_;
  WorkerState& worker_;
  Device& device_;
  const int index_;
  Waiter waiter_;
  std::atomic<bool> is_ending_{false};

 private:
  void note_failure(std::string_view name, std::string_view what);
  void note_invalid_argument(std::string_view name, std::string_view what);

  std::thread thread_;
};

// `EventType` is the engine's EventState; its constructor takes the stream.
template <typename StreamType, typename EventType>
class QueuedStream : public StreamBase {
 public:
  void launch(Op op) override {
    note_use();
    if (index_ == kComputeStream) drop_leases(op.kernel, device_);
    if (context_.remote_memory != nullptr) check_is_here(op);
    const auto issuing = begin_issue();
    for_each_operand(op.kernel, [this](Tensor& operand) { lend(operand); });
    push(std::move(op));
  }
  void copy(const Tensor& to, const Tensor& from, Category category) override {
    check_copy(to, from, device());
    note_use(to.device());
    note_use(from.device());
    const bool is_in_order = index_ == kComputeStream && &from.device() == &device_;
    Copy copy{to, is_in_order ? from.without_lease() : from, category, issuer()};
    const auto issuing = begin_issue();
    lend(copy.to);
    lend(copy.from);
    push(std::move(copy));
  }
  Event record() override {
    note_use();
    auto event = std::make_shared<EventType>(static_cast<StreamType&>(*this));
    const auto issuing = begin_issue();
    note_mark(*event);
    Mark mark{event, issuer()};
    if (!marks_here(mark)) push(std::move(mark));
    return Event(std::move(event));
  }
  void wait(const Event& event) override {
    if (!event.state()) return;
    auto state = std::dynamic_pointer_cast<EventType>(event.state());
    TANDEM_REQUIRE(state != nullptr, "an event of another engine");
    const auto issuing = begin_issue();
    note_wait(*state);
    if (!state->is_complete() || tells_loss(*state)) push(WaitFor{std::move(state), issuer()});
  }
  void join(std::shared_ptr<CollectiveCall> call, int rank, std::optional<double> timeout_s) override {
    const auto issuing = begin_issue();
    call->lend(rank, [this](Tensor& operand) { lend(operand); });
    push(Collective{std::move(call), rank, timeout_s});
  }

 protected:
  using StreamBase::StreamBase;

  struct Mark {
    std::shared_ptr<EventType> event;
    int issuer = issuer_of_family(0);
  };
  struct WaitFor {
    std::shared_ptr<EventType> event;
    int issuer = issuer_of_family(0);
  };

  template <typename Work>
  void push(Work&& work) {
    queue_.push(Item{std::forward<Work>(work), step_of_caller()});
    waiter_.unpark();
  }

  // Called between begin_issue() and the queue.
  virtual void note_mark(EventType& /*event*/) {}
  virtual void note_wait(const EventType& /*event*/) {}
  // Whether the event, which is complete, tells of lost values.
  virtual bool tells_loss(const EventType& /*event*/) const { return false; }
  // Executes the mark on the caller's thread if the stream's has nothing to do.
  virtual bool marks_here(Mark& /*mark*/) { return false; }

  void start() {
    start_thread([this] { work_off(); });
  }
  bool is_empty() const { return queue_.is_empty(); }
  std::size_t left() const { return queue_.size(); }

  // Called on the stream's thread.
  virtual void begin_thread() {}
  virtual bool tidy() { return false; }  // called when the queue is empty; returns true to be called again
  virtual void flush() {}                // issues what is held back, before the thread ends
  virtual void execute(Op& op, int step) = 0;
  virtual void execute(Copy& copy, int step) = 0;
  virtual void execute(Mark& mark, int step) = 0;
  virtual void execute(WaitFor& wait, int step) = 0;
  virtual void execute(Collective& collective, int step) = 0;

 private:
  struct Item {
    std::variant<Op, Copy, Mark, WaitFor, Collective> work;
    int step;
  };

  // The wait for the next item.
  class Idle final : public Wait {
   public:
    explicit Idle(const QueuedStream& stream) : stream_(stream) {}
    bool is_over() const override { return !stream_.queue_.is_empty() || stream_.is_ending_.load(); }
    std::string text() const override { return "work"; }
    bool is_idle() const override { return true; }

   private:
    const QueuedStream& stream_;
  };

  void work_off() {
    waiter_.use_on_this_thread();
    begin_thread();
    for (;;) {
      if (Item* item = queue_.front()) {
        std::visit([&](auto& work) { execute(work, item->step); }, item->work);
        queue_.pop();
      } else if (is_ending_.load()) {
        break;
      } else if (!tidy()) {
        waiter_.wait(Idle(*this), nullptr, Stoppable::no);
      }
    }
    flush();
    waiter_.leave_this_thread();
  }

  WorkQueue<Item> queue_;
};

template <typename Work>
bool StreamBase::attempt(std::string_view name, After after, Work&& work) {
  if (context_.control.is_stopped() || (worker_.has_failed() && after == After::success)) return false;
  try {
    work();
    return true;
  } catch (const DeadlineExceededError&) {
    worker_.miss_deadline(std::current_exception());
  } catch (const InvalidArgumentError& error) {
    note_invalid_argument(name, error.what());
  } catch (const RunStopped&) {  // what stopped it is known already
  } catch (const std::exception& error) {
    note_failure(name, error.what());
  } catch (...) {
    note_failure(name, "an exception of unknown type");
  }
  return false;
}

}  // namespace tandem::threads
