#include "engine/mpi/messages/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/mpi/transport/transport.h"
#include "engine/task.h"

namespace tandem::mpi {
namespace {

constexpr int kTags = 32'000;  // after so many tags, the first ones are no longer in use

CollectiveSpec get_spec(ByteReader& bytes) {
  CollectiveSpec spec;
  spec.kind = bytes.get<CollectiveKind>();
  spec.dtype = bytes.get<DType>();
  spec.count = bytes.get<std::int64_t>();
  spec.reduction = bytes.get<Reduction>();
  spec.root = bytes.get<int>();
  return spec;
}

void put_spec(ByteWriter& bytes, const CollectiveSpec& spec) {
  bytes.put(spec.kind).put(spec.dtype).put(spec.count).put(spec.reduction).put(spec.root);
}

}  // namespace

bool Agreement::Ballot::is_decided() const {
  const State state = state_.load();
  if (state == State::refused) return true;
  if (state == State::open) return false;
  if (order_ == CallOrder::none) return true;
  const std::int64_t place = place_.load();
  return place >= 0 && turn_->load() == place;
}

Agreement::Agreement(int rank, std::vector<std::string> names, Post post)
    : rank_(rank), names_(std::move(names)), post_(std::move(post)), places_given_(names_.size()) {}

std::shared_ptr<Agreement::Ballot> Agreement::ballot_of(const CallId& id) {
  std::shared_ptr<Ballot>& ballot = ballots_[id];
  if (!ballot) ballot = std::make_shared<Ballot>();
  return ballot;
}

bool Agreement::has_ended(const CallId& id) const {
  const auto group = groups_.find(id.group);
  if (group == groups_.end()) return false;
  return id.number < group->second.first_open || group->second.ended.contains(id.number);
}

void Agreement::note_ended(const CallId& id) {
  ballots_.erase(id);
  Group& group = groups_[id.group];
  group.ended.insert(id.number);
  while (group.ended.erase(group.first_open) > 0) ++group.first_open;
}

void Agreement::note_opened(const CallId& id, std::shared_ptr<const SpanningGroup> group,
                            const std::shared_ptr<threads::CollectiveCall>& call) {
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Ballot> ballot = ballot_of(id);
    ballot->group_ = std::move(group);
    ballot->call_ = call;
    if (ballot->state_.load() == Ballot::State::refused && ballot->error_) breaks_.emplace_back(call, ballot->error_);
  }
  break_waiting();
}

std::shared_ptr<const Agreement::Ballot> Agreement::vote(const CallId& id, const threads::CollectiveCall& call,
                                                         CallOrder order, std::string values) {
  std::shared_ptr<Ballot> ballot;
  {
    const std::lock_guard lock(mutex_);
    ballot = ballot_of(id);
    if (is_stopped_) refuse_here(*ballot, {});
    if (ballot->state_.load() == Ballot::State::open) {
      ballot->has_voted_ = true;
      ballot->order_ = order;
      ballot->turn_ = order == CallOrder::job ? &job_turn_ : &groups_[id.group].turn;
      Ballot::Vote vote{.spec = call.spec(), .values = std::move(values)};
      for (const int process : ballot->group_->processes) {
        if (process == rank_) continue;
        post_(process, MessageKind::vote, [&](ByteWriter& bytes) {
          bytes.put(id);
          put_spec(bytes, vote.spec);
          put_purpose(bytes, process, vote.spec.purpose);
          bytes.put_text(vote.values);
        });
      }
      take_vote(rank_, id, *ballot, std::move(vote));
    }
  }
  break_waiting();
  return ballot;
}

AgreedCall Agreement::take(const CallId& id) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Ballot> ballot = ballot_of(id);
  note_ended(id);
  if (!ballot->takes_place()) {
    if (ballot->error_) std::rethrow_exception(ballot->error_);
    throw RunStopped{};
  }
  AgreedCall agreed{.values = {}, .tag = ballot->tag_};
  for (auto& [process, vote] : ballot->votes_) agreed.values.push_back(std::move(vote.values));
  return agreed;
}

void Agreement::end_turn(const CallId& id, CallOrder order) {
  const std::lock_guard lock(mutex_);
  (order == CallOrder::job ? job_turn_ : groups_[id.group].turn).fetch_add(1);
}

void Agreement::give_up(const CallId& id, const threads::CollectiveCall& call, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended(id)) return;
    const std::shared_ptr<Ballot> ballot = ballot_of(id);
    if (ballot->state_.load() != Ballot::State::open) return;
    const JobError reason = plain(id, call, *ballot, error);
    if (!ballot->has_voted_) {
      refuse(id, *ballot, reason);
    } else {
      for (const int process : ballot->group_->processes) {
        if (ballot->votes_.contains(process)) continue;
        post_(process, MessageKind::ask, [&](ByteWriter& bytes) {
          bytes.put(id).put_list(ballot->group_->processes);
          put_error(bytes, reason);
        });
      }
    }
  }
  break_waiting();
}

void Agreement::handle(int from, MessageKind kind, ByteReader& bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto id = bytes.get<CallId>();
    if (kind == MessageKind::order) return give_places(id, bytes.get_list<int>());
    Ballot::Vote vote;  // read also where it comes too late: it may bring the text of a purpose
    if (kind == MessageKind::vote) vote = get_vote(from, bytes);
    if (has_ended(id)) {
      if (is_stopped_ && kind == MessageKind::vote) say_refused(from, id, {});
      return;
    }
    const std::shared_ptr<Ballot> ballot = ballot_of(id);
    switch (kind) {
      case MessageKind::vote:
        handle_vote(from, id, *ballot, std::move(vote));
        break;
      case MessageKind::refuse:
        refuse_here(*ballot, get_error(bytes));
        break;
      case MessageKind::ask: {
        const std::vector<int> processes = bytes.get_list<int>();
        const std::optional<JobError> error = get_error(bytes);
        if (ballot->has_voted_ || ballot->state_.load() != Ballot::State::open) break;
        refuse_here(*ballot, error);
        for (const int process : processes) {
          if (process != rank_) say_refused(process, id, error);
        }
        break;
      }
      case MessageKind::go:
        take_next_place(groups_[id.group], *ballot, bytes.get<int>());
        break;
      case MessageKind::place:
        ballot->place_.store(bytes.get<std::int64_t>());
        break;
      default:
        TANDEM_UNREACHABLE("a message about a call that is none");
    }
  }
  break_waiting();
}

void Agreement::put_purpose(ByteWriter& bytes, int to, Name purpose) {
  const auto next = static_cast<std::uint32_t>(sent_purposes_.size() + 1);
  const auto [known, is_new] =
      purpose.empty() ? std::pair(sent_purposes_.end(), false) : sent_purposes_.try_emplace({to, purpose}, next);
  bytes.put(purpose.empty() ? 0 : known->second).put(is_new);
  if (is_new) bytes.put_text(purpose.text());
}

Agreement::Ballot::Vote Agreement::get_vote(int from, ByteReader& bytes) {
  Ballot::Vote vote{.spec = get_spec(bytes), .values = {}};
  const auto number = bytes.get<std::uint32_t>();
  if (bytes.get<bool>()) known_purposes_[{from, number}] = Name(bytes.get_text());
  if (number != 0) vote.spec.purpose = known_purposes_.at({from, number});
  vote.values = bytes.get_text();
  return vote;
}

void Agreement::handle_vote(int from, const CallId& id, Ballot& ballot, Ballot::Vote vote) {
  if (is_stopped_ && !ballot.has_voted_) return say_refused(from, id, {});
  take_vote(from, id, ballot, std::move(vote));
}

// Every process gets all votes, so all of them find the same difference.
void Agreement::take_vote(int from, const CallId& id, Ballot& ballot, Ballot::Vote vote) {
  if (ballot.state_.load() == Ballot::State::refused) return;
  for (const auto& [other, known] : ballot.votes_) {
    if (known.spec == vote.spec) continue;
    const bool is_first = from < other;
    const int a = is_first ? from : other, b = is_first ? other : from;
    const RunError error =
        call_mismatch(id.number, names_[static_cast<std::size_t>(b)], is_first ? known.spec : vote.spec,
                      names_[static_cast<std::size_t>(a)], is_first ? vote.spec : known.spec);
    return refuse_here(ballot, JobError{.kind = JobError::Kind::run, .text = error.what()});
  }
  ballot.votes_.emplace(from, std::move(vote));
  decide_if_complete(id, ballot);
}

void Agreement::decide_if_complete(const CallId& id, Ballot& ballot) {
  if (!ballot.has_voted_ || ballot.votes_.size() < ballot.group_->processes.size()) return;
  if (ballot.group_->leader() == rank_) go(id, ballot);
  ballot.state_.store(Ballot::State::takes_place);
}

void Agreement::go(const CallId& id, Ballot& ballot) {
  const std::vector<int>& processes = ballot.group_->processes;
  switch (ballot.order_) {
    case CallOrder::none:
      return;
    case CallOrder::group: {
      const int tag = kFirstFreeTag + (tags_++ * static_cast<int>(names_.size()) + rank_) % kTags;
      take_next_place(groups_[id.group], ballot, tag);
      for (const int process : processes) {
        if (process == rank_) continue;
        post_(process, MessageKind::go, [&](ByteWriter& bytes) { bytes.put(id).put(tag); });
      }
      return;
    }
    case CallOrder::job:
      if (rank_ == 0) return give_places(id, processes);
      return post_(0, MessageKind::order, [&](ByteWriter& bytes) { bytes.put(id).put_list(processes); });
  }
}

void Agreement::take_next_place(Group& group, Ballot& ballot, int tag) {
  ballot.tag_ = tag;
  ballot.place_.store(group.places++);
}

void Agreement::give_places(const CallId& id, const std::vector<int>& processes) {
  for (const int process : processes) {
    const std::int64_t place = places_given_.at(static_cast<std::size_t>(process))++;
    if (process == rank_) {
      ballot_of(id)->place_.store(place);
    } else {
      post_(process, MessageKind::place, [&](ByteWriter& bytes) { bytes.put(id).put(place); });
    }
  }
}

void Agreement::refuse(const CallId& id, Ballot& ballot, const std::optional<JobError>& error) {
  refuse_here(ballot, error);
  for (const int process : ballot.group_->processes) {
    if (process != rank_) say_refused(process, id, error);
  }
}

// No error means that the run was stopped elsewhere, and soon will be here; until then waiting tasks go on waiting.
void Agreement::refuse_here(Ballot& ballot, const std::optional<JobError>& error) {
  if (ballot.state_.load() != Ballot::State::open) return;
  ballot.awaits_stop_ = !error && !is_stopped_;
  if (ballot.awaits_stop_) return;
  if (error) ballot.error_ = error->exception();
  ballot.state_.store(Ballot::State::refused);
  if (const auto call = ballot.call_.lock(); call && ballot.error_) breaks_.emplace_back(call, ballot.error_);
}

void Agreement::say_refused(int to, const CallId& id, const std::optional<JobError>& error) {
  post_(to, MessageKind::refuse, [&](ByteWriter& bytes) {
    bytes.put(id);
    put_error(bytes, error);
  });
}

void Agreement::break_waiting() {
  std::vector<Break> breaks;
  {
    const std::lock_guard lock(mutex_);
    breaks = std::exchange(breaks_, {});
  }
  for (const auto& [call, error] : breaks) call->break_now(error);
}

void Agreement::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (const auto& [id, ballot] : ballots_) {
    if (ballot->state_.load() != Ballot::State::open) continue;
    if (!ballot->has_voted_) {
      for (const auto& [process, vote] : ballot->votes_) say_refused(process, id, {});
    }
    if (!ballot->has_voted_ || ballot->awaits_stop_) refuse_here(*ballot, {});
  }
}

void Agreement::begin_next_run() {
  const std::lock_guard lock(mutex_);
  ballots_.clear();
  groups_.clear();
  breaks_.clear();
  sent_purposes_.clear();
  known_purposes_.clear();
  job_turn_.store(0);
  std::fill(places_given_.begin(), places_given_.end(), 0);
  is_stopped_ = false;
}

bool Agreement::needs(int process) {
  const std::lock_guard lock(mutex_);
  return std::any_of(ballots_.begin(), ballots_.end(), [process](const auto& entry) {
    const auto& group = entry.second->group_;
    return group && std::binary_search(group->processes.begin(), group->processes.end(), process);
  });
}

std::vector<OpenCall> Agreement::open_calls() {
  std::vector<OpenCall> open;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, ballot] : ballots_) {
    const auto call = ballot->call_.lock();
    if (!call) continue;
    OpenCall& each = open.emplace_back(
        OpenCall{.id = id, .kind = call->spec().kind, .purpose = call->spec().purpose, .devices = {}, .arrived = {}});
    for (int rank = 0; rank < call->ranks(); ++rank) {
      each.devices.push_back(call->device(rank).id().text());
      if (call->has_arrived(rank)) each.arrived.push_back(rank);
    }
  }
  return open;
}

std::string Agreement::text_of(const CallId& id, const threads::CollectiveCall& call, const Ballot& ballot) const {
  const SpanningGroup& group = *ballot.group_;
  return call_text(call.spec().kind, call.spec().purpose, id.number, group.devices, [&](int rank) {
    return call.has_arrived(rank) || ballot.votes_.contains(group.owners[static_cast<std::size_t>(rank)]);
  });
}

JobError Agreement::plain(const CallId& id, const threads::CollectiveCall& call, const Ballot& ballot,
                          const std::exception_ptr& error) const {
  JobError reason = job_error_of(error).value_or(JobError{.text = "the run was stopped"});
  const std::size_t begin = reason.text.find(threads::kCallMarkBegin), end = reason.text.find(threads::kCallMarkEnd);
  if (begin == std::string::npos || end == std::string::npos) return reason;
  reason.text.replace(begin, end - begin + 1, text_of(id, call, ballot));
  return reason;
}

}  // namespace tandem::mpi
