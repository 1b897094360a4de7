#include "engine/mpi/messages/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/threads/collective_call.h"

namespace tandem::mpi {

std::int64_t CallId::record_sequence() const {
  std::uint64_t mixed = (group ^ static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  mixed ^= mixed >> 29;
  return static_cast<std::int64_t>((mixed & ((std::uint64_t{1} << 62) - 1)) | std::uint64_t{1} << 62);
}

void put_stillness(ByteWriter& bytes, const Stillness& stillness) {
  bytes.put(stillness.is_still)
      .put(stillness.is_after_end_of_job)
      .put_text(stillness.waits)
      .put(stillness.losses)
      .put_list(stillness.sent)
      .put_list(stillness.received);
  bytes.put(static_cast<std::uint64_t>(stillness.open.size()));
  for (const OpenCall& call : stillness.open) put_call(bytes, call);
}

Stillness get_stillness(ByteReader& bytes) {
  Stillness stillness;
  stillness.is_still = bytes.get<bool>();
  stillness.is_after_end_of_job = bytes.get<bool>();
  stillness.waits = bytes.get_text();
  stillness.losses = bytes.get<int>();
  stillness.sent = bytes.get_list<std::int64_t>();
  stillness.received = bytes.get_list<std::int64_t>();
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) stillness.open.push_back(get_call(bytes));
  return stillness;
}

Coordinator::Coordinator(std::vector<std::string> places, Post post)
    : places_(std::move(places)), post_(std::move(post)), processes_(places_.size()) {}

void Coordinator::handle(int from, const std::string& message) {
  ByteReader bytes(message);
  switch (bytes.get<MessageKind>()) {
    case MessageKind::alive:
      return;
    case MessageKind::still:
      processes_[static_cast<std::size_t>(from)].stillness = get_stillness(bytes);
      return find_deadlock();
    case MessageKind::fail: {
      std::optional<JobError> error = get_error(bytes);
      if (error) error->text = plain(error->text);
      return fail(from, error);
    }
    case MessageKind::idle:
      return note_idle(from);
    case MessageKind::done:
      return note_done(from, get_error(bytes));
    case MessageKind::leave:
      return leave(from);
    default:
      TANDEM_UNREACHABLE("a message to the coordinator that is none");
  }
}

// Nothing can happen any more if every process is still and no message is on its way between any two: whatever could
// move a process would have to come from another that has moved before. A process in which nobody waits may not have
// begun yet. When all programs have ended or wait for that, these go on; only what is reported then counts.
void Coordinator::find_deadlock() {
  if (is_stopped_) return;
  const bool has_job_ended = are_all_idle();
  bool does_anybody_wait = false;
  for (const Process& process : processes_) {
    if (process.is_done || process.has_left) continue;
    if (process.stillness.losses < losses_) return;
    if (has_job_ended && !process.stillness.is_after_end_of_job) return;
    if (!process.stillness.is_still || (process.stillness.waits.empty() && !process.is_idle)) return;
    does_anybody_wait |= !process.stillness.waits.empty();
  }
  if (!does_anybody_wait || is_message_on_its_way()) return;
  std::string text;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", places_[i], text_of(processes_[i]));
  }
  fail(-1, JobError{.kind = JobError::Kind::deadlock, .text = "deadlock: " + text});
}

bool Coordinator::is_message_on_its_way() const {
  const auto reports = [](const Process& process) { return !process.is_done && !process.has_left; };
  for (std::size_t from = 0; from < processes_.size(); ++from) {
    for (std::size_t to = 0; to < processes_.size(); ++to) {
      if (!reports(processes_[from]) || !reports(processes_[to])) continue;
      if (processes_[from].stillness.sent.at(to) != processes_[to].stillness.received.at(from)) return true;
    }
  }
  return false;
}

std::string Coordinator::text_of(const Process& process) const {
  if (process.stillness.waits.empty()) return "its programs have ended";
  return plain(process.stillness.waits);
}

void Coordinator::note_idle(int from) {
  processes_[static_cast<std::size_t>(from)].is_idle = true;
  if (!is_stopped_ && are_all_idle()) say_to_all(MessageKind::finish, {});
}

void Coordinator::note_done(int from, std::optional<JobError> error) {
  Process& process = processes_[static_cast<std::size_t>(from)];
  process.is_idle = process.is_done = true;
  if (error && !error_) {
    error_ = std::move(error);
    error_->rank = from;
  }
  end_if_done();
}

void Coordinator::leave(int from) {
  Process& process = processes_[static_cast<std::size_t>(from)];
  process.has_left = process.is_idle = process.is_done = true;
  end_if_done();
  find_deadlock();
}

void Coordinator::lose(int rank) {
  ++losses_;
  Process& process = processes_[static_cast<std::size_t>(rank)];
  if (process.has_left) return;
  const bool was_idle = process.is_idle;
  process.has_left = process.is_idle = process.is_done = true;
  if (!was_idle && !is_stopped_ && are_all_idle()) say_to_all(MessageKind::finish, {});
  end_if_done();
}

bool Coordinator::is_awaited() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.is_idle && !process.has_left; });
}

// The first failure decides the run's error.
void Coordinator::fail(int from, const std::optional<JobError>& error) {
  if (is_stopped_) return;
  is_stopped_ = true;
  if (!error_) {
    error_ = error.value_or(JobError{.kind = JobError::Kind::run, .text = "the run was stopped"});
    error_->rank = from;
  }
  say_to_all(MessageKind::stop, error_);
  end_if_done();
}

void Coordinator::end_if_done() {
  if (count_of(&Process::is_done) < static_cast<int>(processes_.size())) return;
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
    process.has_left = process.is_idle = process.is_done = has_left;
  }
  error_.reset();
  is_stopped_ = false;
}

void Coordinator::say(int to, MessageKind kind, const std::optional<JobError>& error) {
  if (has_left(to)) return;
  ByteWriter bytes;
  bytes.put(kind);
  put_error(bytes, error);
  post_(to, bytes.take());
}

void Coordinator::say_to_all(MessageKind kind, const std::optional<JobError>& error) {
  // A copy, because handling the message here may begin the next run.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const std::optional<JobError> said = error;
  for (std::size_t to = 0; to < processes_.size(); ++to) say(static_cast<int>(to), kind, said);
}

int Coordinator::count_of(bool Process::*state) const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(), [&](const Process& process) { return process.*state; }));
}

std::string Coordinator::plain(const std::string& text) const {
  std::string result;
  std::size_t at = 0;
  for (std::size_t mark; (mark = text.find(threads::kCallMarkBegin, at)) != std::string::npos;) {
    const std::size_t end = text.find(threads::kCallMarkEnd, mark);
    const std::string sequence = text.substr(mark + 1, end - mark - 1);
    std::string name = "a collective";
    for (const Process& process : processes_) {
      for (const OpenCall& call : process.stillness.open) {
        if (std::to_string(call.id.record_sequence()) == sequence) name = text_of(call);
      }
    }
    result += text.substr(at, mark - at) + name;
    at = end + 1;
  }
  return result + text.substr(at);
}

std::string Coordinator::text_of(const OpenCall& call) const {
  std::set<int> arrived;
  for (const Process& process : processes_) {
    for (const OpenCall& other : process.stillness.open) {
      if (other.id == call.id) arrived.insert(other.arrived.begin(), other.arrived.end());
    }
  }
  std::vector<DeviceId> devices;
  for (const std::string& device : call.devices) devices.push_back(DeviceId::parse(device, {}).value());
  return call_text(call.kind, Name(call.purpose), call.id.number, devices,
                   [&](int rank) { return arrived.contains(rank); });
}

}  // namespace tandem::mpi
