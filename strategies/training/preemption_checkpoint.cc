#include "strategies/training/preemption_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>

#include "engine/base/bytes.h"
#include "engine/mailbox.h"
#include "strategies/base/errors.h"

namespace tandem {
namespace {

std::atomic<bool> has_sigterm{false};

void note_sigterm(int /*signal*/) {
  has_sigterm.store(true);
}

void watch_sigterm() {
  static const bool watches = [] {
    struct sigaction action {};
    action.sa_handler = note_sigterm;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    return sigaction(SIGTERM, &action, nullptr) == 0;
  }();
  if (!watches) throw UnknownError("the operating system installs no handler for SIGTERM");
}

std::vector<int> training_workers_of(const Worker& worker) {
  std::vector<int> indices;
  for (int i = 0; i < worker.count(); ++i) {
    const std::string& job = worker.cluster()[static_cast<std::size_t>(i)].job;
    if (job == worker.job() || job == "chief" || job == "worker") indices.push_back(i);
  }
  return indices;
}

// To the first worker: notice (a worker is to be terminated, or its grace period is over; `number`: of checkpoints
// before that), answer (so many calls have begun), saved. To all: ask (how many calls have begun?), agreed (save after
// so many), all_saved. end: of the handler, to itself.
enum class Word : std::uint8_t { notice, ask, answer, agreed, saved, all_saved, end };

WorkerMessage message_of(Word word, int number = 0) {
  ByteWriter bytes;
  return {.text = bytes.put(word).put(number).take()};
}

}  // namespace

// What a worker says to the others, and hears from them, on a task of its own.
class PreemptionCheckpointHandler::Agreement {
 public:
  Agreement(Worker& worker, const std::vector<int>& workers) : monitor_(worker.tasks().make_monitor()) {
    for (const int index : workers) boxes_.push_back(worker.shared().mailbox(index, "preemption"));
    const auto own = std::ranges::find(workers, worker.index());
    if (own == workers.end()) throw ValueError("a preemption handler of a worker that does not train");
    own_ = boxes_[static_cast<std::size_t>(own - workers.begin())];
    listener_ = worker.tasks().start("preemption", [this] { listen(); });
  }
  ~Agreement() {
    own_->send(message_of(Word::end));
    listener_.reset();
  }
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  // Says once that there is a reason for the next checkpoint.
  void announce() {
    {
      const std::lock_guard lock(*monitor_);
      if (announced_ > saved_) return;
      announced_ = saved_ + 1;
    }
    boxes_.front()->send(message_of(Word::notice, announced_ - 1));
  }

  // Begins a call, unless it is the one before which all save: then returns true. Waits where that is being agreed.
  bool begin_call(int& begun) {
    const std::lock_guard lock(*monitor_);
    while (std::max(asked_, announced_) > agreed_) monitor_->wait("the step after which all workers save a checkpoint");
    if (agreed_ > saved_ && begun >= last_call_) return true;
    begun_ = ++begun;
    return false;
  }

  // Waits until all workers have saved.
  void await_all() {
    boxes_.front()->send(message_of(Word::saved));
    const std::lock_guard lock(*monitor_);
    ++saved_;
    while (all_saved_ < saved_) monitor_->wait("all workers to have saved a checkpoint");
  }

 private:
  void send_to_all(Word word, int number = 0) {
    for (const auto& box : boxes_) box->send(message_of(word, number));
  }

  void listen() {
    for (;;) {
      const WorkerMessage message = own_->receive("a notice that a worker is to be terminated");
      ByteReader bytes(message.text);
      const auto word = bytes.get<Word>();
      const auto number = bytes.get<int>();
      if (word == Word::end) return;
      const std::lock_guard lock(*monitor_);
      hear(word, number);
    }
  }

  void hear(Word word, int number) {
    switch (word) {
      case Word::notice:
        if (number != rounds_) break;  // somebody else has said so before
        ++rounds_;
        send_to_all(Word::ask);
        break;
      case Word::ask:
        ++asked_;
        boxes_.front()->send(message_of(Word::answer, begun_));
        break;
      case Word::answer:
        most_ = std::max(most_, number);
        if (++answers_ % boxes_.size() == 0) send_to_all(Word::agreed, most_);
        break;
      case Word::agreed:
        ++agreed_;
        last_call_ = number;
        break;
      case Word::saved:
        if (++saves_ % boxes_.size() == 0) send_to_all(Word::all_saved);
        break;
      case Word::all_saved:
        ++all_saved_;
        break;
      case Word::end:
        break;
    }
    monitor_->notify_all();
  }

  std::vector<std::shared_ptr<Mailbox>> boxes_;  // of all workers; the first one asks
  std::shared_ptr<Mailbox> own_;
  std::shared_ptr<Monitor> monitor_;  // guards the members below
  int begun_ = 0, last_call_ = 0;     // calls
  // Checkpoints so far: announced by this worker, asked about, agreed on, saved here, saved everywhere.
  int announced_ = 0, asked_ = 0, agreed_ = 0, saved_ = 0, all_saved_ = 0;
  // The first worker's.
  int rounds_ = 0, most_ = 0;
  std::size_t answers_ = 0, saves_ = 0;
  std::unique_ptr<BackgroundTask> listener_;  // the last member: it uses the others
};

PreemptionCheckpointHandler::PreemptionCheckpointHandler(Worker& worker, CheckpointManager& manager,
                                                         TerminationConfig config, std::vector<int> workers)
    : worker_(worker), manager_(manager), config_(std::move(config)) {
  if (!config_.termination_watcher) watch_sigterm();
  if (config_.grace_period_s < 0)
    throw ValueError(fmt::format("a grace period of {} s, must be 0 or more", config_.grace_period_s));
  agreement_ = std::make_unique<Agreement>(worker, workers.empty() ? training_workers_of(worker) : std::move(workers));
}

PreemptionCheckpointHandler::~PreemptionCheckpointHandler() = default;

bool PreemptionCheckpointHandler::run(const std::function<void()>& train_step) {
  const bool is_noticed = config_.termination_watcher ? config_.termination_watcher() : has_sigterm.load();
  if (first_saved_ ? grace_is_over() : is_noticed) agreement_->announce();
  while (agreement_->begin_call(begun_)) {
    save();
    agreement_->await_all();
    if (config_.grace_period_s <= 0 || first_saved_) {
      is_preempted_ = true;
      if (config_.exit) config_.exit();
      return false;
    }
    first_saved_ = worker_.now();
  }
  train_step();
  return true;
}

bool PreemptionCheckpointHandler::grace_is_over() {
  return static_cast<double>(worker_.now() - *first_saved_) * 1e-9 >= config_.grace_period_s;
}

void PreemptionCheckpointHandler::save() {
  if (config_.save) return config_.save();
  manager_.save(std::nullopt, false);
}

}  // namespace tandem
