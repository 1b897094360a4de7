#include "engine/sim/sim_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/sim/repeated_issue.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/stream_work.h"

namespace tandem::sim {
namespace {

// `seconds` is the sum of all that the op is charged.
void check_duration(const Op& op, const SimDevice& device, double seconds) {
  if (seconds <= kLatestS) return;
  throw ImpossibleError(fmt::format(
      "op '{}' on {} would take {:.4g} s, and records hold 292 years: {:.4g} flops and {:.4g} bytes on a '{}'",
      op.name.text(), device.name(), seconds, op.cost.flops, op.cost.bytes, device.costs().model().name));
}

}  // namespace

SimStream::SimStream(SimDevice& device, int index) : device_(device), index_(index) {
  if (Cores::Node* const node = device.threads()) thread_ = std::make_unique<Cores::Thread>(*node, false);
}

void SimStream::launch(Op op) {
  device_.run().note_use(device_.worker());
  if (index_ == kComputeStream) drop_leases(op.kernel, device_);
  // A recorded time already includes the slowdown by other work on the device.
  const auto& recorded_s = op.cost.recorded_s;
  if (device_.threads() != nullptr) device_.note_operands(DeviceCosts::small_operand_bytes(op));
  const double in_use = device_.node_peak_bytes();
  const double seconds = recorded_s ? 0 : device_.costs().op_overhead_of(op) + device_.costs().op_s(op, in_use);
  const double alone_s = recorded_s ? *recorded_s : device_.costs().op_alone_s(op, in_use);
  const double launches_s = device_.costs().launch_overhead_of(op) * op.cost.kernels;
  const double issue_s = launches_s + device_.costs().record_overhead_of(op) + op.cost.issue_s;
  check_duration(op, device_, seconds + alone_s + issue_s);
  Record record = make_record(RecordKind::op, op.category, op.name);
  record.bytes = op.cost.bytes;
  record.flops = op.cost.flops;
  OpNeeds needs(std::move(op.kernel), device_.run().carries_values());
  if (RepeatedWork* const repeated = device_.repeated(!needs.is_nothing())) {
    const double issued_s = charge_launch(record.name, issue_s);
    return repeated->add({.kind = RepeatedItem::Kind::op,
                          .stream = this,
                          .issued_s = issued_s,
                          .record = record,
                          .seconds = seconds,
                          .alone_s = alone_s});
  }
  auto work = std::make_unique<OpWork>(std::move(needs), seconds, alone_s, record);
  work->issued_s = charge_launch(record.name, issue_s);
  issue(std::move(work));
}

void SimStream::copy(const Tensor& to, const Tensor& from, Category category) {
  check_copy(to, from, device_);
  for (const Tensor* end : {&to, &from}) {
    device_.run().note_use(static_cast<const SimDevice&>(end->device()).worker());
  }
  device_.repeated(true);
  Record record = make_record(RecordKind::copy, category, "copy");
  record.bytes = static_cast<double>(from.size_bytes());
  const bool is_in_order = index_ == kComputeStream && &from.device() == &device_;
  Tensor target = to, source = is_in_order ? from.without_lease() : from;
  target.lend();
  source.lend();
  const Worker* const issuer = SimTask::current().worker();
  const bool is_remote = issuer != nullptr && issuer->index() != device_.worker();
  auto work = std::make_unique<CopyWork>(std::move(target), std::move(source), record, is_remote);
  work->issued_s = charge_launch(record.name);
  issue(std::move(work));
}

Event SimStream::record() {
  device_.run().note_use(device_.worker());
  auto state = std::make_shared<SimEvent>(device_);
  if (RepeatedWork* const repeated = device_.repeated()) {
    const double issued_s = Simulation::now_s() + SimTask::current().debt_s;
    repeated->add({.kind = RepeatedItem::Kind::record, .stream = this, .issued_s = issued_s, .event = state});
    return Event(std::move(state));
  }
  auto work = std::make_unique<RecordWork>(state);
  work->issued_s = Simulation::now_s() + SimTask::current().debt_s;
  issue(std::move(work));
  return Event(std::move(state));
}

void SimStream::wait(const Event& event) {
  if (event.is_complete()) return;
  auto state = std::dynamic_pointer_cast<SimEvent>(event.state());
  TANDEM_REQUIRE(state != nullptr, "an event of another engine");
  if (RepeatedWork* const repeated = device_.repeated(); repeated != nullptr && repeated->has(*state)) {
    return repeated->add({.kind = RepeatedItem::Kind::wait, .stream = this, .event = std::move(state)});
  }
  device_.repeated(true);
  issue(std::make_unique<WaitWork>(std::move(state)));
}

void SimStream::synchronize() {
  device_.repeated(true);
  Scheduler& scheduler = device_.run().scheduler();
  scheduler.pay_debt();
  const std::uint64_t target = issued_;
  const bool waits = finished_ < target;
  if (waits) {
    scheduler.wait(
        waiting_[target], [&] { return finished_ >= target; }, [this] { return text(); });
  }
  device_.run().note_use(device_.worker());
  if (waits && thread_ == nullptr) scheduler.sleep(device_.costs().synchronize_s());
}

Record SimStream::make_record(RecordKind kind, Category category, Name name) const {
  Record record;
  record.kind = kind;
  record.category = category;
  record.name = name;
  record.worker = device_.worker();
  record.device = device_.index();
  record.stream = index_;
  record.step = device_.run().current_step();
  return record;
}

// The threads of processors hand calls over to one of them.
void SimStream::took_part_in_launch() {
  if (thread_ == nullptr) charge_launch("collective");
}

double SimStream::charge_launch(Name what, double seconds) {
  SimTask& task = SimTask::current();
  task.last_issued = what;
  task.last_device = &device_;
  device_.run().scheduler().throw_if_failed();
  task.debt_s += seconds;
  return Simulation::now_s() + task.debt_s;
}

// Behind other work nothing starts now, so that the kernel is not needed.
void SimStream::issue(std::unique_ptr<StreamWork> work) {
  if (thread_ && thread_->is_asleep() && queue_.empty()) SimTask::current().debt_s += device_.costs().wake_call_s();
  device_.run().scheduler().yield();
  if (head_started_) return enqueue(std::move(work));
  in_kernel([&] { enqueue(std::move(work)); });
}

void SimStream::enqueue(std::unique_ptr<StreamWork> work) {
  ++issued_;
  queue_.push_back(std::move(work));
  advance();
}

void SimStream::advance() {
  if (is_advancing_ || device_.run().scheduler().has_failed()) return;
  is_advancing_ = true;
  while (!head_started_ && !queue_.empty()) start_head();
  is_advancing_ = false;
  if (thread_ && queue_.empty()) device_.run().cores().block(*thread_);
}

void SimStream::start_head() {
  head_started_ = true;
  const StreamWork& head = *queue_.front();
  if (queue_.size() > 1) __builtin_prefetch(queue_[1].get());  // of a thousand streams, none has its work in a cache
  if (head.slows_ops()) device_.enter_collective();
  const bool is_issued = head.issued_s <= Simulation::now_s();
  if (is_issued || (thread_ == nullptr && head.starts_before_issue())) return start_issued_head();
  if (thread_) device_.run().cores().block(*thread_);
  device_.run().simulation().at(head.issued_s, [this] { start_issued_head(); });
}

void SimStream::start_issued_head() {
  if (thread_ == nullptr) return start_head_on_thread();
  Cores& cores = device_.run().cores();
  cores.run(*thread_, nullptr, [this, &cores] {
    if (!queue_.front()->needs_core()) return start_head_on_thread();
    cores.offer(*thread_, [this] { start_head_on_thread(); });
  });
}

void SimStream::start_head_on_thread() {
  guarded(device_.run().scheduler(), [this] { queue_.front()->start(*this); });
}

void SimStream::finish_head() {
  if (queue_.front()->slows_ops()) device_.leave_collective();
  if (!queue_.front()->is_item) ++finished_;
  queue_.pop_front();
  head_started_ = false;
  while (!waiting_.empty() && waiting_.begin()->first <= finished_) {
    device_.run().scheduler().wake_all(waiting_.begin()->second, device_.threads());
    waiting_.erase(waiting_.begin());
  }
  advance();
}

void SimStream::replace_head(std::vector<std::unique_ptr<StreamWork>> works) {
  queue_.pop_front();
  queue_.insert(queue_.begin(), std::make_move_iterator(works.begin()), std::make_move_iterator(works.end()));
  head_started_ = false;
  advance();
}

void SimStream::begin_wait() {
  if (thread_) device_.run().cores().block(*thread_);
}

void SimStream::go_on(const Cores::Node* woken_by, Cores::Then then) {
  if (thread_ == nullptr) return then();
  device_.run().cores().run(*thread_, woken_by, std::move(then));
}

std::string SimStream::text() const {
  const std::string what = queue_.empty() ? "nothing" : queue_.front()->text();
  return fmt::format("stream {} of {}, which is at {}", index_, device_.name(), what);
}

}  // namespace tandem::sim
