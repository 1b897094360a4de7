#include "engine/mpi/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/threads/collective_call.h"

namespace tandem::mpi {

std::int64_t CallId::record_sequence() const {
  std::uint64_t mixed = (group ^ static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  mixed ^= mixed >> 29;
  return static_cast<std::int64_t>((mixed & ((std::uint64_t{1} << 62) - 1)) | std::uint64_t{1} << 62);
}

Coordinator::Coordinator(std::vector<std::string> places, Post post)
    : places_(std::move(places)), post_(std::move(post)), processes_(places_.size()) {}

void Coordinator::handle(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = bytes.get<MessageKind>();
  if (kind == MessageKind::alive) return;
  if (kind == MessageKind::stuck) return note_stuck(from, bytes);
  ++processes_[static_cast<std::size_t>(from)].received;
  switch (kind) {
    case MessageKind::group:
      return note_group(bytes);
    case MessageKind::arrive:
      return arrive(from, bytes);
    case MessageKind::break_off: {
      const OpenCall call = get_call(bytes);
      JobError error = get_error(bytes).value();
      error.text = plain(error.text, {call});
      return break_call(call.id, std::move(error));
    }
    case MessageKind::fail: {
      std::optional<JobError> error = get_error(bytes);
      if (error) error->text = plain(error->text, {});
      return fail(from, std::move(error));
    }
    case MessageKind::done:
      return note_done(from, get_error(bytes));
    case MessageKind::leave:
      return leave(from);
    default:
      TANDEM_UNREACHABLE("a message to the coordinator that is none");
  }
}

void Coordinator::note_group(ByteReader& bytes) {
  const auto hash = bytes.get<std::uint64_t>();
  Group group;
  const auto count = bytes.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    group.devices.push_back(DeviceId::parse(bytes.get_text(), {}).value());
    group.owners.push_back(bytes.get<int>());
    group.processes.insert(group.owners.back());
  }
  groups_.emplace(hash, std::move(group));
}

void Coordinator::arrive(int from, ByteReader& bytes) {
  const auto id = bytes.get<CallId>();
  const CollectiveSpec spec{.kind = bytes.get<CollectiveKind>(),
                            .dtype = bytes.get<DType>(),
                            .count = bytes.get<std::int64_t>(),
                            .reduction = bytes.get<Reduction>(),
                            .root = bytes.get<int>()};
  const Group& group = groups_.at(id.group);
  const auto [found, is_first] = calls_.try_emplace(id, Call{.spec = spec, .arrived = {}});
  Call& call = found->second;
  if (call.is_broken || is_stopped_) return;
  if (!(call.spec == spec)) {
    const int other = *call.arrived.begin();
    const RunError error = call_mismatch(id.number, places_[static_cast<std::size_t>(from)], spec,
                                         places_[static_cast<std::size_t>(other)], call.spec);
    return break_call(id, {.kind = JobError::Kind::run, .text = error.what()});
  }
  call.arrived.insert(from);
  if (call.arrived.size() == group.processes.size()) begin(id, group);
}

void Coordinator::begin(const CallId& id, const Group& group) {
  for (const int process : group.processes) {
    say(process, MessageKind::go, [&](ByteWriter& bytes) { bytes.put(id); });
  }
  calls_.erase(id);
}

void Coordinator::break_call(const CallId& id, JobError error) {
  Call& call = calls_[id];
  if (call.is_broken || is_stopped_) return;
  call.is_broken = true;
  for (const int process : groups_.at(id.group).processes) {
    say(process, MessageKind::broken, [&](ByteWriter& bytes) {
      bytes.put(id);
      put_error(bytes, error);
    });
  }
}

void Coordinator::note_stuck(int from, ByteReader& bytes) {
  Process& process = processes_[static_cast<std::size_t>(from)];
  process.stuck_sent = bytes.get<std::int64_t>();
  process.stuck_received = bytes.get<std::int64_t>();
  process.waits = bytes.get_text();
  process.is_stuck = !process.waits.empty();
  process.open.clear();
  const auto count = bytes.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) process.open.push_back(get_call(bytes));
  if (process.is_stuck) find_deadlock();
}

// Nothing goes on where every process is stuck or done, and no message is on its way to or from one that is stuck.
void Coordinator::find_deadlock() {
  if (is_stopped_ || done_count() == static_cast<int>(processes_.size())) return;
  for (const Process& process : processes_) {
    if (process.is_done) continue;
    if (!process.is_stuck || process.stuck_sent != process.received || process.stuck_received != process.sent) return;
  }
  std::string text;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : "; ", places_[i],
                    processes_[i].is_done ? "its programs have ended" : plain(processes_[i].waits, processes_[i].open));
  }
  fail(-1, JobError{.kind = JobError::Kind::deadlock, .text = "deadlock: " + text});
}

void Coordinator::note_done(int from, std::optional<JobError> error) {
  processes_[static_cast<std::size_t>(from)].is_done = true;
  if (error && !error_) {
    error_ = std::move(error);
    error_->rank = from;
  }
  end_if_done();
  find_deadlock();
}

void Coordinator::leave(int from) {
  Process& process = processes_[static_cast<std::size_t>(from)];
  process.has_left = process.is_done = true;
  end_if_done();
  find_deadlock();
}

bool Coordinator::is_awaited() const {
  return !calls_.empty() || std::any_of(processes_.begin(), processes_.end(),
                                        [](const Process& process) { return process.is_done && !process.has_left; });
}

// The first failure is the run's.
void Coordinator::fail(int from, std::optional<JobError> error) {
  if (is_stopped_) return;
  is_stopped_ = true;
  if (!error_) {
    error_ = error.value_or(JobError{.kind = JobError::Kind::run, .text = "the run was stopped"});
    error_->rank = from;
  }
  say_to_all(MessageKind::stop, {});
  end_if_done();
}

void Coordinator::end_if_done() {
  if (done_count() < static_cast<int>(processes_.size())) return;
  if (error_ && error_->rank >= 0) {
    error_->text = fmt::format("{}: {}", places_[static_cast<std::size_t>(error_->rank)], error_->text);
  }
  say_to_all(MessageKind::end, error_);
  begin_next_run();
}

void Coordinator::begin_next_run() {
  for (Process& process : processes_) {
    const bool has_left = process.has_left;
    process = {};
    process.has_left = process.is_done = has_left;
  }
  groups_.clear();
  calls_.clear();
  error_.reset();
  is_stopped_ = false;
}

void Coordinator::say(int to, MessageKind kind, const std::function<void(ByteWriter&)>& add) {
  Process& process = processes_[static_cast<std::size_t>(to)];
  if (process.has_left) return;
  ++process.sent;
  ByteWriter bytes;
  bytes.put(kind);
  if (add) add(bytes);
  post_(to, bytes.take());
}

void Coordinator::say_to_all(MessageKind kind, const std::optional<JobError>& error) {
  for (std::size_t to = 0; to < processes_.size(); ++to) {
    say(static_cast<int>(to), kind, [&](ByteWriter& bytes) { put_error(bytes, error); });
  }
}

int Coordinator::done_count() const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(), [](const Process& process) { return process.is_done; }));
}

std::string Coordinator::plain(const std::string& text, const std::vector<OpenCall>& reported) const {
  std::string result;
  std::size_t at = 0;
  for (std::size_t mark; (mark = text.find(threads::kCallMarkBegin, at)) != std::string::npos;) {
    const std::size_t end = text.find(threads::kCallMarkEnd, mark);
    const std::string sequence = text.substr(mark + 1, end - mark - 1);
    const auto call = std::find_if(reported.begin(), reported.end(), [&](const OpenCall& each) {
      return std::to_string(each.id.record_sequence()) == sequence;
    });
    result += text.substr(at, mark - at) + (call == reported.end() ? "a collective" : text_of(*call));
    at = end + 1;
  }
  return result + text.substr(at);
}

std::string Coordinator::text_of(const OpenCall& call) const {
  const auto group = groups_.find(call.id.group);
  if (group == groups_.end()) return std::string(name_of(call.kind));
  std::set<int> arrived(call.arrived.begin(), call.arrived.end());
  for (const Process& process : processes_) {
    for (const OpenCall& other : process.open) {
      if (other.id == call.id) arrived.insert(other.arrived.begin(), other.arrived.end());
    }
  }
  const auto known = calls_.find(call.id);
  return call_text(call.kind, call.id.number, group->second.devices, [&](int rank) {
    const int owner = group->second.owners[static_cast<std::size_t>(rank)];
    return arrived.contains(rank) || (known != calls_.end() && known->second.arrived.contains(owner));
  });
}

}  // namespace tandem::mpi
