#include "scenarios/run/evaluations_of_job.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/mailbox.h"
#include "engine/task.h"
#include "scenarios/workloads/evaluation.h"

namespace tandem {
namespace {

constexpr const char* kToTrainer = "evaluations";  // mailboxes
constexpr const char* kToEvaluator = "variables";

void synchronize(Worker& worker) {
  for (Device* device : worker.devices()) device->synchronize();
  worker.cpu().synchronize();
}

// `sums`: over so many examples; 0: they mean nothing.
Evaluated evaluated(std::int64_t step, Nanoseconds time, const Tensor& sums, std::int64_t examples) {
  Evaluated one{.step = step, .time = time};
  if (examples == 0 || !sums || !sums.has_values()) return one;
  const auto values = sums.values<float>();
  one.loss = static_cast<double>(values[0]) / static_cast<double>(examples);
  one.accuracy = static_cast<double>(values[1]) / static_cast<double>(examples);
  return one;
}

Evaluations asked_for(const EvaluationSettings& settings) {
  return {.is_beside = settings.is_beside,
          .every = settings.every_steps,
          .passes = settings.passes,
          .batch = settings.batch};
}

// Training waits.
class BetweenTraining final : public EvaluationsOfWorker {
 public:
  BetweenTraining(const EvaluationSettings& settings, Worker& worker, Workload& workload)
      : settings_(settings), worker_(worker), workload_(workload), all_(asked_for(settings)) {}

  void begin() override { begin_ = worker_.now(); }

  void step_done(int done) override {
    if (settings_.is_due(done)) {
      const Nanoseconds begin = worker_.now();
      const Tensor sums = workload_.evaluate();
      synchronize(worker_);
      const Nanoseconds time = worker_.now() - begin;
      ++all_.due;
      all_.waited += time;
      all_.done.push_back(evaluated(done, time, sums, workload_.evaluated_examples()));
    }
    all_.job = worker_.now() - begin_;
  }

  Evaluations finish() override { return all_; }

 private:
  const EvaluationSettings& settings_;
  Worker& worker_;
  Workload& workload_;
  Evaluations all_;
  Nanoseconds begin_ = 0;
};

// What the evaluator says: that it is free, and what it has found out before.
std::string text_of(const std::optional<Evaluated>& last) {
  ByteWriter bytes;
  bytes.put(last.has_value());
  if (last) {
    bytes.put(last->step).put(last->time).put(last->loss.has_value());
    bytes.put(last->loss.value_or(0)).put(last->accuracy.value_or(0));
  }
  return bytes.take();
}

std::optional<Evaluated> evaluated_in(const std::string& text) {
  ByteReader bytes(text);
  if (!bytes.get<bool>()) return std::nullopt;
  Evaluated last;
  last.step = bytes.get<std::int64_t>();
  last.time = bytes.get<Nanoseconds>();
  const bool has_values = bytes.get<bool>();
  const auto loss = bytes.get<double>(), accuracy = bytes.get<double>();
  if (has_values) last.loss = loss, last.accuracy = accuracy;
  return last;
}

constexpr std::int64_t kEnd = -1;  // instead of a step, to the evaluator

std::string text_of(std::int64_t step) {
  ByteWriter bytes;
  return bytes.put(step).take();
}

// Worker 0 copies its variables when an evaluation is due, and a task of its own hands the newest copy to the evaluator
// whenever that one is free.
class BesideTraining final : public EvaluationsOfWorker {
 public:
  BesideTraining(const EvaluationSettings& settings, int evaluator, Worker& worker, Workload& workload)
      : settings_(settings),
        worker_(worker),
        workload_(workload),
        monitor_(worker.tasks().make_monitor()),
        from_evaluator_(worker.shared().mailbox(worker.index(), kToTrainer)),
        to_evaluator_(worker.shared().mailbox(evaluator, kToEvaluator)),
        all_(asked_for(settings)),
        server_(worker.tasks().start("evaluations", [this] { serve(); })) {}

  // Where training has failed, nobody asks for its last variables.
  ~BesideTraining() override {
    if (!server_) return;
    try {
      stop_serving(true);
    } catch (...) {  // the run was stopped, which also ends the server's waits
    }
    server_.reset();
  }
  BesideTraining(const BesideTraining&) = delete;
  BesideTraining& operator=(const BesideTraining&) = delete;

  void begin() override { begin_ = worker_.now(); }

  void step_done(int done) override {
    if (settings_.is_due(done)) {
      const Nanoseconds begin = worker_.now();
      Snapshot copy{.step = done, .variables = workload_.variables()};
      synchronize(worker_);
      waited_ += worker_.now() - begin;
      ++due_;
      const std::lock_guard lock(*monitor_);
      newest_ = std::move(copy);
      monitor_->notify_all();
    }
    job_ = worker_.now() - begin_;
  }

  Evaluations finish() override {
    const Nanoseconds last_step = worker_.now();
    stop_serving(false);
    server_.reset();
    all_.due = due_;
    all_.waited = waited_;
    all_.job = job_;
    all_.afterwards = worker_.now() - last_step;
    return all_;
  }

 private:
  struct Snapshot {
    std::int64_t step = 0;
    std::vector<Tensor> variables{};
  };

  // The newest variables are evaluated before, unless they are dropped.
  void stop_serving(bool drops_newest) {
    const std::lock_guard lock(*monitor_);
    has_ended_ = true;
    if (drops_newest) newest_.reset();
    monitor_->notify_all();
  }

  void serve() {
    for (;;) {
      const WorkerMessage message = from_evaluator_->receive("the evaluator");
      if (auto last = evaluated_in(message.text)) all_.done.push_back(*last);
      std::optional<Snapshot> next = take_newest();
      if (!next) return to_evaluator_->send({.text = text_of(kEnd)});
      to_evaluator_->send({.text = text_of(next->step), .tensors = std::move(next->variables)});
    }
  }

  std::optional<Snapshot> take_newest() {
    const std::lock_guard lock(*monitor_);
    while (!newest_ && !has_ended_) monitor_->wait("variables to evaluate");
    return std::exchange(newest_, std::nullopt);
  }

  const EvaluationSettings& settings_;
  Worker& worker_;
  Workload& workload_;
  std::unique_ptr<Monitor> monitor_;
  std::shared_ptr<Mailbox> from_evaluator_, to_evaluator_;
  std::optional<Snapshot> newest_{};
  bool has_ended_ = false;
  Evaluations all_;  // the server's until it has ended
  std::int64_t due_ = 0;
  Nanoseconds begin_ = 0, waited_ = 0, job_ = 0;
  std::unique_ptr<BackgroundTask> server_;
};

// The other workers have nothing to do with an evaluator.
class NoPart final : public EvaluationsOfWorker {
 public:
  void begin() override {}
  void step_done(int /*done*/) override {}
  Evaluations finish() override { return {}; }
};

int evaluator_of(const Job& job) {
  const auto found = std::ranges::find(job.tasks, std::string_view(kEvaluatorJob), &WorkerSpec::job);
  TANDEM_CHECK(found != job.tasks.end(), "a job without an evaluator");
  return static_cast<int>(found - job.tasks.begin());
}

}  // namespace

std::unique_ptr<EvaluationsOfWorker> evaluations_of_worker(const Job& job, Worker& worker, Workload& workload) {
  if (!job.scenario.evaluation) return nullptr;
  const EvaluationSettings& settings = *job.scenario.evaluation;
  workload.evaluates(settings);
  if (!settings.is_beside) return std::make_unique<BetweenTraining>(settings, worker, workload);
  if (worker.index() != 0) return std::make_unique<NoPart>();
  return std::make_unique<BesideTraining>(settings, evaluator_of(job), worker, workload);
}

void finish(EvaluationsOfWorker& evaluations, Report& report) {
  Evaluations all = evaluations.finish();
  if (all.due > 0) report.evaluations = std::move(all);
}

void evaluate_beside(Worker& worker, const Job& job) {
  const std::unique_ptr<Evaluator> evaluator = make_evaluator(job.scenario.workload, *job.scenario.evaluation, worker);
  const std::shared_ptr<Mailbox> to_trainer = worker.shared().mailbox(0, kToTrainer);
  const std::shared_ptr<Mailbox> from_trainer = worker.shared().mailbox(worker.index(), kToEvaluator);
  std::optional<Evaluated> last;
  for (;;) {
    to_trainer->send({.text = text_of(last)});
    const WorkerMessage message = from_trainer->receive("variables to evaluate");
    const auto step = ByteReader(message.text).get<std::int64_t>();
    if (step == kEnd) return;
    const Nanoseconds begin = worker.now();
    const Tensor sums = evaluator->evaluate(message.tensors);
    last = evaluated(step, worker.now() - begin, sums, evaluator->examples());
  }
}

}  // namespace tandem
