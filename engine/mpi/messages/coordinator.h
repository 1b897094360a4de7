// Rank 0's part of engine/mpi/messages/protocol.h: decides how a run ends, and finds deadlocks.
//
// Threads: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/mpi/messages/protocol.h"

namespace tandem::mpi {

class Coordinator {
 public:
  using Post = std::function<void(int to, std::string message)>;
  // `places` name the processes: "rank 1 on node7".
  Coordinator(std::vector<std::string> places, Post post);

  void handle(int from, const std::string& message);
  // Goes on without a process that was lost, in this run and later ones.
  void lose(int rank);
  // Whether a process waits for the others, so that the next message is urgent.
  bool is_awaited() const;
  // Whether the process takes part in no more runs.
  bool has_left(int rank) const { return processes_.at(static_cast<std::size_t>(rank)).has_left; }

 private:
  struct Process {
    bool is_idle = false, is_done = false, has_left = false;
    Stillness stillness;
  };

  void note_idle(int from);
  void note_done(int from, std::optional<JobError> error);
  void leave(int from);
  void fail(int from, const std::optional<JobError>& error);
  void end_if_done();
  void find_deadlock();
  bool is_message_on_its_way() const;
  void begin_next_run();
  void say(int to, MessageKind kind, const std::optional<JobError>& error);
  void say_to_all(MessageKind kind, const std::optional<JobError>& error);
  int count_of(bool Process::*state) const;
  bool are_all_idle() const { return count_of(&Process::is_idle) == static_cast<int>(processes_.size()); }
  std::string text_of(const Process& process) const;
  // Replaces the marks of calls by what is known about them.
  std::string plain(const std::string& text) const;
  std::string text_of(const OpenCall& call) const;

  const std::vector<std::string> places_;
  const Post post_;
  std::vector<Process> processes_;
  std::optional<JobError> error_;  // of the run
  bool is_stopped_ = false;
  int losses_ = 0;
};

}  // namespace tandem::mpi
