// The replicas of one run(): they advance in replica order, one at a time, each up to its next merge_call or its end.
//
// Only the replica that holds the baton runs, so what the replicas share needs no lock of its own. When all have
// reached a merge point, replica 0 runs its merge function, which may use what is on its stack, also when the run is
// stopped.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy_implementation.h"

namespace tandem {

class ReplicaGroup {
 public:
  // One replica per device; their ids among all in sync begin at `first_id`.
  ReplicaGroup(Strategy& strategy, Worker& worker, const std::vector<Device*>& devices, int first_id);

  std::size_t size() const { return replicas_.size(); }

  // Calls `function` once per replica, regroups what they return, and rethrows the first failure. Throws ValueError,
  // before any replica runs, for an argument with fewer parts than there are replicas.
  Value run(const ReplicaFunction& function, const Value::Parts& arguments);
  // ReplicaContext::merge_call of a replica.
  Value merge_call(int replica, const MergeFunction& function, const Value::Parts& arguments,
                   const MergePurpose& purpose);

  // Returns the variable that a replica asks for. For replica 0, `make` makes it; the other replicas get the variables
  // of the same canonical name in the order of creation. Throws RuntimeError when none is left.
  std::shared_ptr<Variable> variable(int replica, const VariableSpec& spec,
                                     const std::function<std::shared_ptr<Variable>(const VariableSpec&)>& make);

 private:
  enum class State : std::uint8_t { running, merging, finished };
  struct Replica {
    std::unique_ptr<ReplicaContext> context;
    std::unique_ptr<Monitor> monitor;  // guards holds_baton
    bool holds_baton = false;
    State state = State::running;
    int merge_calls = 0;
    std::map<std::string, std::size_t> variables{};  // asked for so far, by canonical name
    Value::Parts arguments;                          // of its merge_call
    MergePurpose purpose;                            // of its merge_call
    Value result;                                    // of its merge_call, then of the replica function
  };
  struct Stopped {};  // unwinds replicas that wait when another one has failed

  void replica_main(int replica, const ReplicaFunction& function, const Value::Parts& arguments);
  void take_baton(int replica, const std::string& reason);
  void give_baton(int replica);
  void pass_on(int replica);
  void merge();
  void check_purposes() const;
  void fail(std::exception_ptr failure);
  std::string replicas_in(State state) const;

  Strategy& strategy_;
  Worker& worker_;
  std::vector<Replica> replicas_;
  std::map<std::string, std::vector<std::shared_ptr<Variable>>> variables_;  // of this run(), by canonical name
  std::vector<VariableCreator> creators_;                                    // of the caller of run()
  MergeFunction merge_function_;
  std::unique_ptr<Monitor> failure_monitor_;  // guards failure_: an engine may stop several waiting replicas
  std::exception_ptr failure_;
  bool is_stopped_ = false;
};

}  // namespace tandem
