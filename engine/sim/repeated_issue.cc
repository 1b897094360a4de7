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

bool has_record(const RepeatedItem& item) {
  return item.kind == RepeatedItem::Kind::op || item.kind == RepeatedItem::Kind::collective;
}

Nanoseconds in_ns(double seconds) {
  return std::llround(seconds * 1e9);
}

}  // namespace

RepeatedWork::RepeatedWork(SimDevice& device)
    : device_(device), began_s_(Simulation::now_s() + SimTask::current().debt_s) {}

void RepeatedWork::add(RepeatedItem item) {
  item.issued_s = item.kind == RepeatedItem::Kind::wait ? 0 : item.issued_s - began_s_;
  auto part = std::ranges::find(parts_, item.stream, &Part::stream);
  if (part == parts_.end()) part = parts_.insert(parts_.end(), Part{.stream = item.stream});
  part->items.push_back(items_.size());
  const bool is_slow = item.kind == RepeatedItem::Kind::collective && item.spec.kind != CollectiveKind::send_receive &&
                       !item.spec.by_copy_engines;
  slowing_ += is_slow ? 1 : 0;
  items_.push_back(std::move(item));
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
  start_s_ = Simulation::now_s();
  if (can_run_together()) return run_together();
  run_stepwise();
}

bool RepeatedIssue::can_run_together() const {
  return work_->times_ != nullptr && std::ranges::all_of(places_, &Place::has_arrived) && !is_slowed() &&
         issued_s_ + work_->times_->lead_s <= start_s_;
}

// Whether another stream slows the device down now, or may begin to do so before this work ends.
bool RepeatedIssue::is_slowed() const {
  const SimDevice& device = work_->device_;
  if (device.is_in_collective()) return true;
  return std::ranges::any_of(device.streams(), [this](const auto& stream) {
    return !std::ranges::count(work_->parts_, stream.second.get(), &RepeatedWork::Part::stream) &&
           stream.second->may_slow_before(stream_of(0));
  });
}

void RepeatedIssue::run_together() {
  const RepeatedWork::Times& times = *work_->times_;
  SimRun& run = work_->device_.run();
  const Nanoseconds start_ns = Simulation::now_ns();
  std::int64_t first_call = 0;
  for (std::int64_t call = 0; call < times.calls; ++call) {
    const std::int64_t number = run.groups().next_sequence();
    if (call == 0) first_call = number;
  }
  for (Record record : times.records) {
    record.start_ns += start_ns;
    record.end_ns += start_ns;
    record.step = step_;
    if (record.kind == RecordKind::collective) record.sequence += first_call;
    run.add_record(record);
  }
  for (std::size_t part = 0; part < places_.size(); ++part) {
    SimStream& stream = stream_of(part);
    run.simulation().at(start_s_ + times.ends_s[part], [&stream] { stream.finish_head(); });
  }
}

void RepeatedIssue::run_stepwise() {
  is_stepwise_ = true;
  is_disturbed_ = is_slowed() || !std::ranges::all_of(places_, &Place::has_arrived);
  slowed_before_ = work_->device_.collectives_begun();
  make_items();
  for (std::size_t part = 0; part < places_.size(); ++part) {
    if (places_[part].has_arrived) stream_of(part).replace_head(std::move(places_[part].items));
  }
}

void RepeatedIssue::make_items() {
  std::unordered_map<const SimEvent*, std::shared_ptr<SimEvent>> events;
  std::unordered_map<const SimStream*, std::size_t> parts;
  for (std::size_t part = 0; part < places_.size(); ++part) parts.emplace(&stream_of(part), part);
  for (const RepeatedItem& item : work_->items_) {
    std::shared_ptr<SimEvent> event;
    if (item.event) {
      std::shared_ptr<SimEvent>& known = events[item.event.get()];
      if (!known) known = std::make_shared<SimEvent>(work_->device_, *item.event->stream());
      event = known;
    }
    std::unique_ptr<StreamWork> work = work_of(item, event, step_, this);
    if (item.kind != RepeatedItem::Kind::wait) work->issued_s = issued_s_ + item.issued_s;
    work->is_item = true;
    places_[parts.at(item.stream)].items.push_back(std::move(work));
  }
  for (std::size_t part = 0; part < places_.size(); ++part) {
    places_[part].items.push_back(std::make_unique<RepeatedEnd>(shared_from_this(), part));
  }
}

void RepeatedIssue::ended(const Record& record) {
  records_.push_back(record);
}

void RepeatedIssue::end(std::size_t part) {
  places_[part].ended_s = Simulation::now_s();
  if (--under_way_ == 0) keep_times();
}

void RepeatedIssue::keep_times() {
  if (is_disturbed_ || work_->times_ != nullptr) return;
  if (work_->device_.collectives_begun() - slowed_before_ != work_->slowing_) return;
  auto times = std::make_unique<RepeatedWork::Times>();
  for (std::size_t part = 0; part < places_.size(); ++part) {
    if (was_limited_by_host(part, *times)) return;
    times->ends_s.push_back(places_[part].ended_s - start_s_);
  }
  std::unordered_map<std::int64_t, std::int64_t> calls;
  const Nanoseconds start_ns = in_ns(start_s_);
  for (Record& record : records_) {
    record.start_ns -= start_ns;
    record.end_ns -= start_ns;
    if (record.kind != RecordKind::collective) continue;
    record.sequence = calls.emplace(record.sequence, static_cast<std::int64_t>(calls.size())).first->second;
  }
  times->calls = static_cast<std::int64_t>(calls.size());
  times->records = std::move(records_);
  work_->times_ = std::move(times);
}

// Whether an item but the first one waited for the host to issue it. Notes how early the host has to begin.
bool RepeatedIssue::was_limited_by_host(std::size_t part, RepeatedWork::Times& times) const {
  const int stream = stream_of(part).index();
  auto record = records_.begin();
  for (const std::size_t index : work_->parts_[part].items) {
    const RepeatedItem& item = work_->items_[index];
    if (!has_record(item)) continue;
    record = std::find_if(record, records_.end(), [stream](const Record& one) { return one.stream == stream; });
    TANDEM_CHECK(record != records_.end(), "an item of repeated work has no record");
    if (index > 0 && record->start_ns <= in_ns(issued_s_ + item.issued_s)) return true;
    times.lead_s = std::max(times.lead_s, item.issued_s - (static_cast<double>(record->start_ns) * 1e-9 - start_s_));
    ++record;
  }
  return false;
}

}  // namespace tandem::sim
