// Rank 0's part of engine/mpi/protocol.h: matches the calls of all processes, and decides how a run ends.
//
// Threads: one at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/mpi/protocol.h"

namespace tandem::mpi {

class Coordinator {
 public:
  using Post = std::function<void(int to, std::string message)>;
  // `places` name the processes: "rank 1 on node7".
  Coordinator(std::vector<std::string> places, Post post);

  void handle(int from, const std::string& message);
  // Whether somebody waits for others, so that the next message matters.
  bool is_awaited() const;
  // Whether the process takes part in no further run.
  bool has_left(int rank) const { return processes_.at(static_cast<std::size_t>(rank)).has_left; }

 private:
  struct Group {
    std::vector<DeviceId> devices;
    std::vector<int> owners;  // the process of each
    std::set<int> processes;
  };
  struct Call {
    CollectiveSpec spec;
    std::set<int> arrived;  // processes
    bool is_broken = false;
  };
  struct Process {
    std::int64_t received = 0, sent = 0;  // messages of this run from and to it, but for `stuck` and `alive`
    bool is_done = false, has_left = false;
    bool is_stuck = false;
    std::int64_t stuck_sent = 0, stuck_received = 0;  // as it counted them when it was stuck
    std::string waits;
    std::vector<OpenCall> open;
  };

  void note_group(ByteReader& bytes);
  void arrive(int from, ByteReader& bytes);
  void begin(const CallId& id, const Group& group);
  void break_call(const CallId& id, JobError error);
  void note_stuck(int from, ByteReader& bytes);
  void note_done(int from, std::optional<JobError> error);
  void leave(int from);
  void fail(int from, std::optional<JobError> error);
  void end_if_done();
  void find_deadlock();
  void begin_next_run();
  void say(int to, MessageKind kind, const std::function<void(ByteWriter&)>& add = {});
  void say_to_all(MessageKind kind, const std::optional<JobError>& error);
  int done_count() const;
  // Replaces the marks of calls by what is known of them; `reported`: by the process that wrote the text.
  std::string plain(const std::string& text, const std::vector<OpenCall>& reported) const;
  std::string text_of(const OpenCall& call) const;

  const std::vector<std::string> places_;
  const Post post_;
  std::vector<Process> processes_;
  std::map<std::uint64_t, Group> groups_;
  std::map<CallId, Call> calls_;
  std::optional<JobError> error_;  // the run's
  bool is_stopped_ = false;
};

}  // namespace tandem::mpi
