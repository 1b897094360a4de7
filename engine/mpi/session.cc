#include "engine/mpi/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/bytes.h"
#include "engine/mpi/join_watch.h"
#include "engine/mpi/transport_library.h"

namespace tandem::mpi {
namespace {

enum class Status : std::uint8_t { goes_on, leaves };

std::string status_text(Status status, const std::string& failure, const std::map<std::string, std::string>& what) {
  ByteWriter bytes;
  bytes.put(status).put_text(failure).put(static_cast<std::uint64_t>(what.size()));
  for (const auto& [name, value] : what) bytes.put_text(name).put_text(value);
  return bytes.take();
}

struct ReadStatus {
  Status status;
  std::string failure;
  std::map<std::string, std::string> what;
};

ReadStatus read_status(const std::string& text) {
  ByteReader bytes(text);
  ReadStatus read{.status = bytes.get<Status>(), .failure = bytes.get_text(), .what = {}};
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) {
    std::string name = bytes.get_text();
    read.what[std::move(name)] = bytes.get_text();
  }
  return read;
}

}  // namespace

Session* Session::join() {
  static std::unique_ptr<Session> session;
  if (session || rank_of_process().count == 1) return session.get();
  if (const std::string& reason = reason_to_refuse_jobs(); !reason.empty()) {
    throw UnavailableError(fmt::format("engine 'mpi' cannot use the {} processes that were launched: {}",
                                       rank_of_process().count, reason));
  }
  const JoinWatch watch(rank_of_process());
  Transport& transport = open_transport();
  if (transport.size() == 1) {
    throw UnavailableError(
        fmt::format("engine 'mpi': the launcher says that there are {} processes, but {} finds itself alone; launch "
                    "with the mpirun "
                    "of that MPI",
                    rank_of_process().count, transport.library()));
  }
  session.reset(new Session(transport));
  set_joined_job(session.get());
  return session.get();
}

Session::Session(Transport& transport) : transport_(transport), hosts_(transport.gather(transport.host())) {
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    places_.push_back(fmt::format("rank {} on {}", rank, hosts_[rank]));
  }
  messenger_ = std::make_unique<Messenger>(transport, places_);
}

Session::~Session() {
  set_joined_job(nullptr);
  if (!messenger_) return;
  messenger_.reset();
  transport_.finalize();
}

std::vector<std::string> Session::leave(const std::string& failure) {
  if (!has_met_end_) note_failures(transport_.gather(status_text(Status::leaves, failure, {})));
  std::vector<std::string> messages;
  if (!failure.empty()) messages.push_back(failure);
  for (const auto& [rank, text] : failures_) {
    if (rank == transport_.rank()) continue;
    const bool is_known = std::any_of(messages.begin(), messages.end(), [&text = text](const std::string& known) {
      return known.find(text) != std::string::npos || text.find(known) != std::string::npos;
    });
    if (!is_known) messages.push_back(fmt::format("{}: {}", place(rank), text));
  }
  return messages;
}

void Session::part() {
  transport_.gather("");
  messenger_.reset();
  transport_.finalize();
}

void Session::note_failures(const std::vector<std::string>& statuses) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    const ReadStatus read = read_status(statuses[rank]);
    if (read.status == Status::leaves) has_met_end_ = true;
    if (!read.failure.empty()) failures_[static_cast<int>(rank)] = read.failure;
  }
}

std::vector<std::string> Session::exchange(const std::map<std::string, std::string>& what) {
  if (has_met_end_) throw RunError("another rank has left the job");
  std::vector<std::string> statuses = transport_.gather(status_text(Status::goes_on, "", what));
  note_failures(statuses);
  if (!failures_.empty()) {
    throw RunError(fmt::format("{}: {}", place(failures_.begin()->first), failures_.begin()->second));
  }
  if (has_met_end_) throw RunError("another rank has left the job");
  return statuses;
}

void Session::meet(const std::map<std::string, std::string>& what) {
  std::map<std::string, std::string> all = stated_;
  all.insert(what.begin(), what.end());
  refuse_differences(exchange(all));
}

std::vector<std::string> Session::gather(const std::string& mine) {
  static const std::string kGathered = "what is gathered";
  std::vector<std::string> texts;
  for (const std::string& status : exchange({{kGathered, mine}})) {
    texts.push_back(std::move(read_status(status).what[kGathered]));
  }
  return texts;
}

void Session::refuse_differences(const std::vector<std::string>& statuses) const {
  const std::map<std::string, std::string> first = read_status(statuses.front()).what;
  for (std::size_t rank = 1; rank < statuses.size(); ++rank) {
    const std::map<std::string, std::string> other = read_status(statuses[rank]).what;
    for (const auto& [name, value] : first) {
      const auto found = other.find(name);
      if (found != other.end() && found->second == value) continue;
      throw RunError(fmt::format("{} has another {} than {}: {} instead of {}; all ranks of a job run the same",
                                 places_[rank], name, places_.front(), found == other.end() ? "none" : found->second,
                                 value));
    }
  }
}

}  // namespace tandem::mpi
