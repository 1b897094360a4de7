#include "engine/sim/repeated_issue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engine/sim/collectives/collective_call.h"
#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {
namespace {

constexpr double kRoundingS = 1e-12;  // of sums of dates

// A stream's part in one time.
class RepeatedPart : public StreamWork {
 public:
  RepeatedPart(std::shared_ptr<RepeatedIssue> issue, std::size_t part) : issue_(std::move(issue)), part_(part) {}
  void start(SimStream& /*stream*/) override {
    const std::shared_ptr<RepeatedIssue> issue = issue_;  // this part may be replaced meanwhile
    issue->arrive(part_);
  }
  std::string text() const override { return "work that it repeats"; }

 private:
  std::shared_ptr<RepeatedIssue> issue_;
  std::size_t part_;
};

// Follows the items of a part.
class RepeatedEnd : public StreamWork {
 public:
  RepeatedEnd(std::shared_ptr<RepeatedIssue> issue, std::size_t part) : issue_(std::move(issue)), part_(part) {}
  void start(SimStream& stream) override {
    issue_->end(part_);
    stream.finish_head();
  }
  std::string text() const override { return "the end of work that it repeats"; }

 private:
  std::shared_ptr<RepeatedIssue> issue_;
  std::size_t part_;
};

// An item that has begun in a run that was together, and whose end is known.
class RepeatedRest : public StreamWork {
 public:
  RepeatedRest(Record record, double end_s, bool slows_ops) : record_(record), end_s_(end_s), slows_ops_(slows_ops) {}
  void start(SimStream& stream) override {
    stream.sim_device().run().simulation().at(end_s_, [this, &stream] {
      stream.sim_device().run().add_record(record_);
      stream.finish_head();
    });
  }
  std::string text() const override { return "the rest of '" + record_.name.text() + "'"; }
  bool slows_ops() const override { return slows_ops_; }

 private:
  Record record_;
  double end_s_;
  bool slows_ops_;
};

std::unique_ptr<StreamWork> work_of(const RepeatedItem& item, const std::shared_ptr<SimEvent>& event, int step,
                                    RecordListener* listener) {
  Record record = item.record;
  record.step = step;
  switch (item.kind) {
    case RepeatedItem::Kind::op:
      return std::make_unique<OpWork>(OpNeeds(), item.seconds, item.alone_s, record, listener);
    case RepeatedItem::Kind::collective:
      return std::make_unique<CollectiveWork>(item.group->next_call(item.caller, item.spec), item.rank, record,
                                              std::nullopt, listener);
    case RepeatedItem::Kind::record:
      return std::make_unique<RecordWork>(event);
    case RepeatedItem::Kind::wait:
      return std::make_unique<WaitWork>(event);
  }
  TANDEM_UNREACHABLE("a kind of repeated items");
}

}  // namespace

bool RepeatedItem::slows_ops() const {
  return kind == Kind::collective && CollectiveCall::slows_ops(spec);
}

RepeatedWork::RepeatedWork(SimDevice& device)
    : device_(device), began_s_(Simulation::now_s() + SimTask::current().debt_s) {}

void RepeatedWork::add(RepeatedItem item) {
  item.issued_s = item.kind == RepeatedItem::Kind::wait ? 0 : item.issued_s - began_s_;
  auto part = std::ranges::find(parts_, item.stream, &Part::stream);
  if (part == parts_.end()) part = parts_.insert(parts_.end(), Part{.stream = item.stream});
  part->items.push_back(items_.size());
  slowing_ += item.slows_ops() ? 1 : 0;
  const auto is_other_op = [&item](const RepeatedItem& one) {
    return one.kind == RepeatedItem::Kind::op && one.stream != item.stream;
  };
  const bool shares_device = item.kind == RepeatedItem::Kind::op && std::ranges::any_of(items_, is_other_op);
  const bool begins_alone = part != parts_.begin() && part->items.size() == 1 && item.kind != RepeatedItem::Kind::wait;
  items_.push_back(std::move(item));
  if (shares_device || begins_alone) device_.repeated(true);
}

void RepeatedWork::end() {
  host_s_ = Simulation::now_s() + SimTask::current().debt_s - began_s_;
}

bool RepeatedWork::has(const SimEvent& event) const {
  return std::ranges::any_of(items_, [&](const RepeatedItem& item) {
    return item.kind == RepeatedItem::Kind::record && item.event.get() == &event;
  });
}

void RepeatedWork::spoil() {
  is_spoilt_ = true;
  in_kernel([&] {
    for (const RepeatedItem& item : items_) {
      std::unique_ptr<StreamWork> work = work_of(item, item.event, item.record.step, nullptr);
      if (item.kind != RepeatedItem::Kind::wait) work->issued_s = began_s_ + item.issued_s;
      item.stream->enqueue(std::move(work));
    }
  });
  items_.clear();
  parts_.clear();
}

// The first part is the last to be issued, so that the others have arrived when it does, if nothing is before them.
void RepeatedWork::issue(double began_s) {
  if (items_.empty()) return;
  const auto issue = std::make_shared<RepeatedIssue>(shared_from_this(), began_s, device_.run().current_step());
  for (std::size_t i = parts_.size(); i-- > 0;) {
    auto part = std::make_unique<RepeatedPart>(issue, i);
    part->issued_s = began_s + items_[parts_[i].items.front()].issued_s;
    parts_[i].stream->issue(std::move(part));
  }
}

RepeatedIssue::RepeatedIssue(std::shared_ptr<RepeatedWork> work, double issued_s, int step)
    : work_(std::move(work)),
      issued_s_(issued_s),
      step_(step),
      places_(work_->parts_.size()),
      under_way_(places_.size()) {}

void RepeatedIssue::arrive(std::size_t part) {
  places_[part].has_arrived = true;
  if (is_stepwise_) return stream_of(part).replace_head(std::move(places_[part].items));
  if (part > 0) return;
  // What wakes this stream may be about to end another part of the same work, at this instant.
  if (std::ranges::all_of(places_, &Place::has_arrived)) return start();
  work_->device_.run().simulation().at(Simulation::now_s(), [issue = shared_from_this()] { issue->start(); });
}

void RepeatedIssue::start() {
  work_->device_.disturb();  // a part of earlier work that has not ended
  start_s_ = Simulation::now_s();
  start_ns_ = Simulation::now_ns();
  if (can_run_together()) return run_together();
  make_items(std::nullopt);
  run_stepwise();
}

bool RepeatedIssue::can_run_together() const {
  return work_->times_ != nullptr && std::ranges::all_of(places_, &Place::has_arrived) &&
         !work_->device_.is_in_collective() && issued_s_ + work_->times_->lead_s <= start_s_;
}

// The first part is the last to end: what follows in its stream may have parts in the others, too.
void RepeatedIssue::run_together() {
  SimRun& run = work_->device_.run();
  for (std::int64_t call = 0; call < work_->times_->calls; ++call) {
    const std::int64_t number = run.groups().next_sequence();
    if (call == 0) first_call_ = number;
  }
  work_->device_.set_together(this);
  for (std::size_t part = places_.size(); part-- > 0;) {
    run.simulation().at(start_s_ + work_->times_->ends_s[part],
                        [issue = shared_from_this(), part] { issue->end_together(part); });
  }
}

void RepeatedIssue::end_together(std::size_t part) {
  if (is_stepwise_) return;
  places_[part].has_ended = true;
  if (--under_way_ == 0) {
    work_->device_.set_together(nullptr);
    add_records(std::numeric_limits<double>::infinity());
  }
  stream_of(part).finish_head();
}

Record RepeatedIssue::record_at(const RepeatedWork::ItemTime& time) const {
  Record record = time.record;
  record.start_ns += start_ns_;
  record.end_ns += start_ns_;
  record.step = step_;
  if (record.kind == RecordKind::collective) record.sequence += first_call_;
  return record;
}

void RepeatedIssue::add_records(double until_s) const {
  SimRun& run = work_->device_.run();
  for (std::size_t i = 0; i < work_->items_.size(); ++i) {
    const RepeatedWork::ItemTime& time = work_->times_->items[i];
    if (work_->items_[i].has_record() && time.end_s <= until_s) run.add_record(record_at(time));
  }
}

void RepeatedIssue::disturb() {
  const double after_s = Simulation::now_s() - start_s_ + kRoundingS;
  add_records(after_s);
  make_items(after_s);
  run_stepwise();
  is_disturbed_ = true;
}

void RepeatedIssue::run_stepwise() {
  const SimDevice& device = work_->device_;
  is_stepwise_ = true;
  is_disturbed_ = device.is_in_collective() || !std::ranges::all_of(places_, &Place::has_arrived);
  slowed_before_ = device.collectives_begun();
  for (std::size_t part = 0; part < places_.size(); ++part) {
    const Place& place = places_[part];
    if (place.has_arrived && !place.has_ended) stream_of(part).replace_head(std::move(places_[part].items));
  }
}

// Both ends of a call that goes round a ring have begun if one has.
std::set<std::int64_t> RepeatedIssue::calls_begun(double after_s) const {
  std::set<std::int64_t> begun;
  for (const RepeatedWork::ItemTime& time : work_->times_->items) {
    if (time.record.kind == RecordKind::collective && time.start_s <= after_s) begun.insert(time.record.sequence);
  }
  return begun;
}

void RepeatedIssue::make_items(std::optional<double> after_s) {
  const std::set<std::int64_t> begun = after_s ? calls_begun(*after_s) : std::set<std::int64_t>();
  std::unordered_map<const SimEvent*, std::shared_ptr<SimEvent>> events;
  std::unordered_map<const SimStream*, std::size_t> parts;
  for (std::size_t part = 0; part < places_.size(); ++part) parts.emplace(&stream_of(part), part);
  for (std::size_t i = 0; i < work_->items_.size(); ++i) {
    const RepeatedItem& item = work_->items_[i];
    const RepeatedWork::ItemTime* const time = after_s ? &work_->times_->items[i] : nullptr;
    const bool has_ended = time != nullptr && time->end_s <= *after_s;
    std::shared_ptr<SimEvent> event;
    if (item.event) {
      std::shared_ptr<SimEvent>& known = events[item.event.get()];
      if (!known) known = std::make_shared<SimEvent>(work_->device_);
      event = known;
      if (has_ended && item.kind == RepeatedItem::Kind::record) event->complete();
    }
    if (has_ended) continue;
    const bool has_begun = time != nullptr && item.has_record() &&
                           (time->start_s <= *after_s ||
                            (item.kind == RepeatedItem::Kind::collective && begun.contains(time->record.sequence)));
    std::unique_ptr<StreamWork> work;
    if (has_begun) {
      work = std::make_unique<RepeatedRest>(record_at(*time), start_s_ + time->end_s, item.slows_ops());
    } else {
      work = work_of(item, event, step_, this);
      if (item.kind != RepeatedItem::Kind::wait) work->issued_s = issued_s_ + item.issued_s;
    }
    work->is_item = true;
    places_[parts.at(item.stream)].items.push_back(std::move(work));
  }
  for (std::size_t part = 0; part < places_.size(); ++part) {
    if (!places_[part].has_ended) {
      places_[part].items.push_back(std::make_unique<RepeatedEnd>(shared_from_this(), part));
    }
  }
}

void RepeatedIssue::ended(const Record& record) {
  ended_.push_back({.record = record, .end_s = Simulation::now_s()});
}

// What follows the first part to end may begin a collective before another part ends, at the same instant.
void RepeatedIssue::end(std::size_t part) {
  const double now_s = Simulation::now_s();
  if (now_s > ended_s_) slowed_after_ = work_->device_.collectives_begun();
  places_[part].ended_s = ended_s_ = now_s;
  if (--under_way_ == 0) keep_times();
}

void RepeatedIssue::keep_times() {
  if (is_disturbed_ || work_->times_ != nullptr) return;
  if (slowed_after_ - slowed_before_ != work_->slowing_) return;
  auto times = std::make_unique<RepeatedWork::Times>();
  times->items.resize(work_->items_.size());
  for (std::size_t part = 0; part < places_.size(); ++part) {
    if (!find_times(part, *times)) return;
    times->ends_s.push_back(places_[part].ended_s - start_s_);
  }
  std::unordered_map<std::int64_t, std::int64_t> calls;
  std::vector<double> now_s(places_.size());
  std::unordered_map<const SimEvent*, double> recorded_s;
  for (std::size_t i = 0; i < work_->items_.size(); ++i) {
    const RepeatedItem& item = work_->items_[i];
    RepeatedWork::ItemTime& time = times->items[i];
    const auto part = std::ranges::find(work_->parts_, item.stream, &RepeatedWork::Part::stream);
    double& now = now_s[static_cast<std::size_t>(part - work_->parts_.begin())];
    if (item.kind == RepeatedItem::Kind::collective) {
      const auto next = static_cast<std::int64_t>(calls.size());
      time.record.sequence = calls.emplace(time.record.sequence, next).first->second;
    } else if (item.kind == RepeatedItem::Kind::record) {
      time.start_s = time.end_s = recorded_s[item.event.get()] = now;
    } else if (item.kind == RepeatedItem::Kind::wait) {
      time.start_s = now;
      time.end_s = std::max(now, recorded_s.at(item.event.get()));
    }
    now = time.end_s;
  }
  times->calls = static_cast<std::int64_t>(calls.size());
  work_->times_ = std::move(times);
}

// Finds the times of what was recorded of a part. Returns false if an item but the first one waited for the host to
// issue it; notes how early the host has to begin.
bool RepeatedIssue::find_times(std::size_t part, RepeatedWork::Times& times) {
  const int stream = stream_of(part).index();
  auto ended = ended_.begin();
  for (const std::size_t index : work_->parts_[part].items) {
    const RepeatedItem& item = work_->items_[index];
    if (!item.has_record()) continue;
    ended = std::find_if(ended, ended_.end(), [stream](const Ended& one) { return one.record.stream == stream; });
    TANDEM_CHECK(ended != ended_.end(), "an item of repeated work has no record");
    if (index > 0 && ended->record.start_ns <= std::llround((issued_s_ + item.issued_s) * 1e9)) return false;
    RepeatedWork::ItemTime& time = times.items[index];
    time.start_s = static_cast<double>(ended->record.start_ns) * 1e-9 - start_s_;
    time.end_s = ended->end_s - start_s_;
    time.record = ended->record;
    time.record.start_ns -= start_ns_;
    time.record.end_ns -= start_ns_;
    times.lead_s = std::max(times.lead_s, item.issued_s - time.start_s);
    ++ended;
  }
  return true;
}

}  // namespace tandem::sim
