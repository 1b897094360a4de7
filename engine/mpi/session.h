// This process's membership in the job that a launcher has started, or whose tasks were started one by one: the
// transport, and the messenger.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/launched_job.h"
#include "engine/mpi/messages/messenger.h"
#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

class Session final : public LaunchedJob {
 public:
  // Joins the job at the first call: by MPI where a launcher has started this process with others (by sockets where it
  // keeps the others of a process that ends), else the tasks of set_tasks() by TCP. Returns null where this process is
  // alone. Throws UnavailableError where MPI or this task's address cannot be used, and where refuse_jobs() forbids it;
  // RunError where tasks do not meet; and RunError, on all ranks, if they have different purposes or are different
  // builds, whose messages may differ.
  static Session* join();
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Rank rank() const override { return {transport_.rank(), transport_.size()}; }
  const std::vector<std::string>& hosts() const override { return hosts_; }
  void state(std::map<std::string, std::string> what) override;
  std::vector<std::string> gather(const std::string& mine) override;
  std::vector<std::string> leave(const std::string& failure) override;
  void part() override;

  Transport& transport() { return transport_; }
  Messenger& messenger() { return *messenger_; }
  const std::string& place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

  // Waits until all processes call it: before an engine is opened and before each run. Throws RunError in all of them
  // if they state different things, or if one has failed in the meantime.
  void meet(const std::map<std::string, std::string>& what);

 private:
  Session(Transport& transport, const TaskList& tasks);  // no tasks: ranks of a launch
  static Transport& join_launch();
  void begin();
  // Returns what all processes say. Throws RunError if one of them has left.
  std::vector<std::string> exchange(const std::map<std::string, std::string>& what);
  bool is_of_all(const std::string& failure) const;
  std::string of_rank(int rank, const std::string& failure) const;
  void note_failures(const std::vector<std::string>& statuses);
  using Stated = std::map<std::string, std::string>;
  void refuse_differences(const std::vector<Stated>& stated) const;  // by rank

  Transport& transport_;
  std::vector<std::string> hosts_, places_;
  std::vector<Stated> programs_;          // what the ranks are, before they exchange anything else
  std::unique_ptr<Messenger> messenger_;  // null in a job that its ranks could not begin, or have left
  std::map<std::string, std::string> stated_;
  std::map<int, std::string> failures_;  // by rank, of the processes that have ended with one
  bool has_met_end_ = false;             // a process has left, so the processes meet no more
  bool has_parted_ = false;
};

}  // namespace tandem::mpi
