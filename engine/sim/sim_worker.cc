#include "engine/sim/sim_worker.h"

#include <fmt/format.h>

#include "engine/sim/sim_monitor.h"

namespace tandem::sim {
namespace {

// The end of a task, shared by the task and the one that started it.
struct TaskEnd {
  bool has_come = false;
  WaitList waiting;
};

// Calls a function when a scope is left.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> function) : function_(std::move(function)) {}
  ~AtEnd() { function_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const std::function<void()> function_;
};

class StartedTask final : public BackgroundTask {
 public:
  StartedTask(Scheduler& tasks, std::shared_ptr<TaskEnd> end) : tasks_(tasks), end_(std::move(end)) {}
  ~StartedTask() override {  // NOLINT(bugprone-exception-escape): without memory, the end
    tasks_.wait_uninterrupted(
        end_->waiting, [this] { return end_->has_come; }, [] { return std::string("a task it started to end"); });
  }
  StartedTask(const StartedTask&) = delete;
  StartedTask& operator=(const StartedTask&) = delete;

 private:
  Scheduler& tasks_;
  std::shared_ptr<TaskEnd> end_;
};

}  // namespace

SimWorker::SimWorker(SimRun& run, int index, std::vector<Device*> devices, SimDevice& cpu)
    : SharedInProcess(static_cast<Worker&>(*this)), run_(run), index_(index), devices_(std::move(devices)), cpu_(cpu) {}

SimWorker::~SimWorker() = default;

std::unique_ptr<SimTask> SimWorker::make_task(std::string name) {
  auto task = std::make_unique<SimTask>(std::move(name), this);
  task->takes_thread_of = cpu_.threads();
  return task;
}

void SimWorker::start(const Program& program) {
  Scheduler& scheduler = run_.scheduler();
  scheduler.start(
      make_task(fmt::format("worker {}", index_)), cpu_.node(), [this, &program] { program(*this); },
      [this, &scheduler](const std::exception_ptr& error) {
        if (error && !run_.goes_on_without(index_, error)) scheduler.fail(error);
        run_.note_end_of_work(index_);
      });
}

Nanoseconds SimWorker::now() {
  run_.scheduler().pay_debt();
  return Simulation::now_ns();
}

// The first function runs on the caller's own thread, which goes on when all have ended.
void SimWorker::run_functions(int n, const std::function<void(int)>& function, bool take_threads) {
  TANDEM_REQUIRE(n >= 0, "a negative number of functions");
  Scheduler& scheduler = run_.scheduler();
  scheduler.pay_debt();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
  int left = n;
  WaitList list;
  SimTask& caller = SimTask::current();
  Cores::Thread* const own = caller.thread;
  for (int i = 0; i < n; ++i) {
    auto task = std::make_unique<SimTask>(fmt::format("{} replica {}", caller.name(), i), this);
    if (i == 0) task->thread = own;
    if (i > 0 && take_threads) task->takes_thread_of = cpu_.threads();
    SimTask* const started = task.get();
    scheduler.start(
        std::move(task), cpu_.node(), [&function, i] { function(i); },
        [&, i, started](std::exception_ptr error) {
          errors[static_cast<std::size_t>(i)] = std::move(error);
          if (--left == 0) return scheduler.wake_all(list);
          if (started->thread != nullptr && started->thread == own) run_.cores().block(*own);
        });
  }
  caller.has_lent_thread = n > 0;
  scheduler.wait_uninterrupted(
      list, [&] { return left == 0; }, [&] { return fmt::format("{} of its replicas", left); });
  caller.has_lent_thread = false;
  scheduler.forget_cause();
  scheduler.throw_if_failed();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void SimWorker::run_concurrently(int n, const std::function<void(int)>& function) {
  run_functions(n, function, true);
}

void SimWorker::run_in_turn(int n, const std::function<void(int)>& function) {
  const double wake_up_s = cpu_.costs().wake_up_s();
  if (wake_up_s <= 0 || n <= 1) return run_concurrently(n, function);
  struct Turn {
    bool has_come = false;
    bool is_awake = false;            // the thread of the function before goes on with this one
    Cores::Thread* thread = nullptr;  // that one
    bool owns_thread = false;
    WaitList list{};
  };
  Scheduler& scheduler = run_.scheduler();
  std::vector<Turn> turns(static_cast<std::size_t>(n) + 1);  // the last is nobody's
  turns.front() = {.has_come = true, .is_awake = true, .thread = SimTask::current().thread};
  const auto give = [&](int to, bool is_awake) {
    Turn& turn = turns[static_cast<std::size_t>(to)];
    if (turn.has_come) return;
    turn.has_come = true;
    turn.is_awake = is_awake;
    if (is_awake && to < n) {
      SimTask& task = SimTask::current();
      turn.thread = std::exchange(task.thread, nullptr);
      turn.owns_thread = std::exchange(task.owns_thread, false);
    }
    scheduler.wake_all(turn.list);
  };
  const auto take_turn = [&](int i) {
    Turn& turn = turns[static_cast<std::size_t>(i)];
    scheduler.wait_uninterrupted(
        turn.list, [&] { return turn.has_come; }, [] { return std::string("its turn"); });
    SimTask& task = SimTask::current();
    if (turn.is_awake) {
      task.thread = turn.thread;
      task.owns_thread = turn.owns_thread;
    } else if (Cores::Node* const node = cpu_.threads()) {
      scheduler.begin_thread(*node);
    } else {
      scheduler.sleep(wake_up_s);
    }
  };
  run_functions(
      n,
      [&](int i) {
        if (i > 0) take_turn(i);
        const AtEnd next([&] {
          SimTask::current().before_blocking = {};
          give(i + 1, true);
        });
        SimTask::current().before_blocking = [&give, i] { give(i + 1, false); };
        function(i);
        scheduler.pay_debt();
      },
      false);
}

// Workers that interact other than in collectives do so one after the other, so none can represent the others.
void SimWorker::needs_all_workers(std::string_view why) const {
  if (run_.symmetry() == nullptr) return;
  run_.symmetry()->give_up(fmt::format("worker {} {}", index_, why));
  run_.scheduler().throw_if_failed();
}

Device& SimWorker::device(const DeviceId& id) {
  SimDevice& device = run_.device(id);
  if (device.worker() != index_) needs_all_workers("uses a device of another worker");
  return device;
}

std::shared_ptr<void> SimWorker::object(std::string_view name, const Factory& make) {
  needs_all_workers("shares an object with others");
  return run_.shared().get(name, make);
}

void SimWorker::await_end_of_job() {
  needs_all_workers("waits for the end of the job");
  for (Device* device : devices_) device->synchronize();
  cpu_.synchronize();
  run_.await_end_of_job(index_);
}

std::unique_ptr<BackgroundTask> SimWorker::start(std::string_view name, std::function<void()> function) {
  Scheduler& tasks = run_.scheduler();
  auto end = std::make_shared<TaskEnd>();
  tasks.start(make_task(fmt::format("{} {}", Task::current().name(), name)), cpu_.node(), std::move(function),
              [&tasks, end](const std::exception_ptr& error) {
                end->has_come = true;
                tasks.wake_all(end->waiting);
                if (error) tasks.fail(error);
              });
  return std::make_unique<StartedTask>(tasks, std::move(end));
}

std::unique_ptr<Monitor> SimWorker::make_monitor() {
  return std::make_unique<SimMonitor>(run_.scheduler());
}

Communicator& SimWorker::communicator(std::span<const DeviceId> devices) {
  CollectiveGroup& group = run_.groups().group(run_, devices);
  auto& communicator = communicators_[&group];
  if (!communicator) communicator = std::make_unique<SimCommunicator>(run_, group, index_);
  return *communicator;
}

void SimWorker::took_input(std::int64_t elements, std::int64_t bytes) {
  const double factor = run_.faults() != nullptr ? run_.faults()->factor_of_input(index_) : 1;
  SimTask::current().debt_s += factor * cpu_.costs().input_s(elements, static_cast<double>(bytes));
}

void SimWorker::begin_step(int step) {
  TANDEM_REQUIRE(step >= 0, "a negative step");
  TANDEM_REQUIRE(step_ == kNoStep, "a step begins within a step");
  if (run_.symmetry() != nullptr) run_.symmetry()->begin_step(step);
  if (step == 0) run_.begin_steps();
  if (run_.faults() != nullptr) {
    run_.faults()->begin_step(index_, step);
    run_.scheduler().throw_if_failed();
  }
  step_start_ns_ = now();
  step_ = step;
}

void SimWorker::end_step() {
  TANDEM_REQUIRE(step_ != kNoStep, "a step ends that has not begun");
  for (Device* device : devices_) device->synchronize();
  cpu_.synchronize();
  Record record;
  record.kind = RecordKind::step;
  record.category = Category::other;
  record.name = fmt::format("step {}", step_);
  record.worker = index_;
  record.step = step_;
  record.start_ns = step_start_ns_;
  record.end_ns = now();
  run_.add_record(record);
  step_ = kNoStep;
}

}  // namespace tandem::sim
