// Says in a strategy's terms what it does otherwise than it must: in which call, what was found on each replica and
// what must be found there, what a correct strategy does, and where it ran.
//
// Threads: a Judge belongs to the program of one worker; RunCalls may be used by all workers of a run.
#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

class Worker;
struct StrategyUnderTest;

using Numbers = std::vector<double>;
using ByReplica = std::vector<Numbers>;

// "[4, 4, 6]"; long ones are shortened.
std::string numbers_text(const Numbers& numbers);
// "  replica 2: found [4], must be [12]\n" for each replica from `first` on; "nothing" where there is no value.
std::string lines_by_replica(const ByReplica& found, const ByReplica& expected, int first);

// A call as messages name it, and what a correct strategy does in it, for example "adds the values of all replicas".
struct JudgedCall {
  std::string call, rule;
  bool operator==(const JudgedCall&) const = default;
};

// The message for a problem in a call of the strategy. `lines` ends with a line break, or is empty.
std::string message_of(const JudgedCall& call, std::string_view problem, std::string_view lines,
                       std::string_view where);

// The calls in which the workers of a run are.
class RunCalls {
 public:
  void note(int worker, const JudgedCall& call);
  // The message for an error that has ended the run.
  std::string message_of_error(std::string_view error, std::string_view where) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, JudgedCall> calls_;
};

class Judge {
 public:
  Judge(const StrategyUnderTest& tested, Worker& worker, RunCalls& run);

  // The call that the test makes next. All messages up to the next one are about it.
  void asks(std::string call, std::string rule);

  // Fails the test, if found and expected differ, with `what` of the call ("the result"). Returns whether they agree.
  bool expect(std::string_view what, const Numbers& found, const Numbers& expected);
  bool expect_text(std::string_view what, const std::string& found, const std::string& expected);
  // The same for a value of each local replica, in order.
  bool expect_by_replica(std::string_view what, const ByReplica& found, const ByReplica& expected);
  // Fails unless `call` throws an Expected, which `kind` names.
  template <typename Expected, typename Function>
  void must_throw(std::string_view kind, const Function& call);
  // Fails with the problem, for example "ran replica 1 twice".
  void fail(std::string_view problem, std::string_view lines = "");
  bool has_failed() const { return has_failed_; }

  int replicas() const { return replicas_; }  // of all workers
  int first_replica() const { return first_replica_; }
  int local_replicas() const { return local_replicas_; }
  // The same expectation for each local replica.
  ByReplica each(const Numbers& expected) const { return {static_cast<std::size_t>(local_replicas_), expected}; }

 private:
  std::string where_;
  int worker_, replicas_, first_replica_, local_replicas_;
  RunCalls& run_;
  JudgedCall call_{};
  bool has_failed_ = false;
};

template <typename Expected, typename Function>
void Judge::must_throw(std::string_view kind, const Function& call) {
  std::string found = "threw nothing";
  try {
    call();
  } catch (const Expected&) {
    return;
  } catch (const std::exception& error) {
    found = std::string("threw another exception (") + error.what() + ")";
  }
  fail(found + ", must throw " + std::string(kind));
}

}  // namespace tandem
