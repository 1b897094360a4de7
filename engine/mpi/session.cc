#include "engine/mpi/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/mpi/build_identity.h"
#include "engine/mpi/join_watch.h"
#include "engine/mpi/launched_sockets.h"
#include "engine/mpi/transport/tcp_join.h"
#include "engine/mpi/transport/tcp_transport.h"
#include "engine/mpi/transport/transport_library.h"

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

// What a process says first, one a line, which every build must be able to read.
std::string introduction() {
  return host_name() + "\n" + purpose() + "\n" + build_identity();
}

std::string first_line_of(std::string& text) {
  const std::size_t end = text.find('\n');
  std::string line = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

std::string_view without_program(std::string_view failure) {
  constexpr std::string_view kProgram = "tandem: ";
  return failure.starts_with(kProgram) ? failure.substr(kProgram.size()) : failure;
}

bool is_part_of(std::string_view part, std::string_view text) {
  return text.find(without_program(part)) != std::string_view::npos;
}

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
  if (session) return session.get();
  const TaskList& tasks = tasks_of_process();
  const bool is_launched = rank_of_process().count > 1;
  const int count = is_launched ? rank_of_process().count : static_cast<int>(tasks.names.size());
  if (count <= 1) return nullptr;
  if (const std::string& reason = reason_to_refuse_jobs(); !reason.empty()) {
    throw UnavailableError(fmt::format("engine 'mpi' cannot use the {} {}: {}", count,
                                       is_launched ? "processes that were launched" : "tasks of the cluster", reason));
  }
  const bool has_mpi = is_launched && !launcher_keeps_others();
  Transport& transport = has_mpi       ? join_launch()
                         : is_launched ? open_launched_sockets(rank_of_process())
                                       : open_tcp_transport(tasks, join_timeout_s());
  session.reset(new Session(transport, is_launched ? TaskList() : tasks));
  set_joined_job(session.get());
  session->begin();
  return session.get();
}

// All processes that the launcher has started together, by MPI.
Transport& Session::join_launch() {
  const JoinWatch watch(rank_of_process());
  Transport& transport = open_transport();
  if (transport.size() == 1) refuse_lone_rank(rank_of_process(), transport.library());
  return transport;
}

Session::Session(Transport& transport, const TaskList& tasks) : transport_(transport) {
  for (std::string& text : transport.gather(introduction())) {
    hosts_.push_back(first_line_of(text));
    const std::size_t rank = places_.size();
    places_.push_back(tasks.names.empty() ? fmt::format("rank {} on {}", rank, hosts_.back())
                                          : place_of_task(tasks, static_cast<int>(rank)));
    Stated& program = programs_.emplace_back();
    program["command"] = first_line_of(text);
    program["program build"] = first_line_of(text);
  }
}

void Session::begin() {
  has_met_end_ = true;  // all ranks leave without another word if the next line throws
  refuse_differences(programs_);
  has_met_end_ = false;
  messenger_ = std::make_unique<Messenger>(transport_, places_);
}

Session::~Session() {
  set_joined_job(nullptr);
  if (has_parted_) return;
  messenger_.reset();
  transport_.finalize();
}

void Session::state(std::map<std::string, std::string> what) {
  for (auto& [name, value] : what) stated_[name] = std::move(value);
}

std::vector<std::string> Session::leave(const std::string& failure) {
  if (!has_met_end_) note_failures(transport_.gather(status_text(Status::leaves, failure, {})));
  std::vector<std::string> messages;
  if (!failure.empty()) messages.push_back(is_of_all(failure) ? failure : of_rank(transport_.rank(), failure));
  for (const auto& [rank, text] : failures_) {
    if (rank == transport_.rank()) continue;
    const bool is_known = std::any_of(messages.begin(), messages.end(), [&text = text](const std::string& known) {
      return is_part_of(text, known) || is_part_of(known, text);
    });
    if (!is_known) messages.push_back(of_rank(rank, text));
  }
  return messages;
}

// Whether another rank has ended with the same failure, or all have left before.
bool Session::is_of_all(const std::string& failure) const {
  if (failures_.empty()) return true;
  return std::any_of(failures_.begin(), failures_.end(),
                     [&](const auto& other) { return other.first != transport_.rank() && other.second == failure; });
}

// "tandem: rank 1 on node7: cannot write ...".
std::string Session::of_rank(int rank, const std::string& failure) const {
  const std::string_view text = without_program(failure);
  const std::string program = failure.substr(0, failure.size() - text.size());
  return text.starts_with(place(rank)) ? failure : fmt::format("{}{}: {}", program, place(rank), text);
}

void Session::part() {
  has_parted_ = true;
  transport_.gather("");
  messenger_.reset();
  transport_.finalize();
}

void Session::note_failures(const std::vector<std::string>& statuses) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank].empty()) continue;  // the rank was lost
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
    const auto& [rank, failure] = *failures_.begin();
    const std::string text = of_rank(rank, failure);
    throw RunError(std::string(without_program(text)));
  }
  if (has_met_end_) throw RunError("another rank has left the job");
  return statuses;
}

void Session::meet(const std::map<std::string, std::string>& what) {
  std::map<std::string, std::string> all = stated_;
  all.insert(what.begin(), what.end());
  std::vector<Stated> stated;
  for (const std::string& status : exchange(all)) {
    stated.push_back(status.empty() ? all : read_status(status).what);  // "": the rank was lost
  }
  refuse_differences(stated);
}

std::vector<std::string> Session::gather(const std::string& mine) {
  static const std::string kGathered = "what is gathered";
  std::vector<std::string> texts;
  for (const std::string& status : exchange({{kGathered, mine}})) {
    texts.push_back(status.empty() ? "" : std::move(read_status(status).what[kGathered]));
  }
  return texts;
}

void Session::refuse_differences(const std::vector<Stated>& stated) const {
  for (std::size_t rank = 1; rank < stated.size(); ++rank) {
    for (const auto& [name, value] : stated.front()) {
      const auto found = stated[rank].find(name);
      if (found != stated[rank].end() && found->second == value) continue;
      throw RunError(fmt::format("{} has another {} than {}: {} instead of {}; all ranks of a job run the same",
                                 places_[rank], name, places_.front(),
                                 found == stated[rank].end() ? "none" : found->second, value));
    }
  }
}

}  // namespace tandem::mpi
