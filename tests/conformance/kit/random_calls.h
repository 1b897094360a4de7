// Programs of calls drawn from a seed, which can be watched and disturbed on the way. random_calls()
// (strategy_conformance.h) runs one as it is.
//
// Threads: a RandomCalls belongs to the program of one worker.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "strategies/strategy/strategy.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

struct CallHooks {
  std::function<void(const std::string& call)> before{};  // each call
  // Called where a function that a call was given begins, and where it has given work to its device: in replicas, which
  // are several threads on real engines, in merge_call and in update. What it throws is what the function throws.
  std::function<void()> in_function{};
};

class RandomCalls {
 public:
  // Creates the program's variables. Fills `seen` with what the calls see, also where a later one throws; both must
  // outlive it.
  RandomCalls(Worker& worker, Strategy& strategy, std::uint64_t seed, const CallHooks& hooks,
              std::vector<SeenCall>& seen);

  // Makes so many calls, then reads every variable.
  void make(int calls);

  // The variables of which all components must be equal at any time.
  const std::vector<std::shared_ptr<Variable>>& mirrored() const { return mirrored_; }

 private:
  void begin(std::string call);  // what is seen from now on belongs to it
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  void enter_function() const;
  std::shared_ptr<Variable> variable(VariableAggregation aggregation, VariableSynchronization synchronization);
  Tensor filled(double value) const;
  void see(const Tensor& tensor);
  void see(const Value& value);
  const std::shared_ptr<Variable>& any(const std::vector<std::shared_ptr<Variable>>& variables);

  void assign_in_replicas();
  void change_in_cross_replica();
  void all_reduce_and_gather();
  void merge_calls();
  void reduce_and_gather();
  void update();

  Worker& worker_;
  Strategy& strategy_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<Variable>> mirrored_, on_read_;
  const CallHooks& hooks_;
  std::vector<SeenCall>& seen_;
};

}  // namespace tandem
