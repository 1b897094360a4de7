// Rounds of synchronous updates: every worker takes part in every update of a variable, one of them applies it, and all
// wait for it where they read or update the variable next. All workers update the same variables in the same order.
//
// The parts of a sum are added up on the server, in the order in which they come, in an accumulator: TensorFlow's
// SyncReplicasOptimizer does the same with a ConditionalAccumulator and a queue of tokens. Here the worker that comes
// last issues the update, and its tokens are messages to the others.
//
//   one worker    give(v), part 1 of 2     await(v) ... returns          read v
//   another one           give(v), part 2 of 2: applies, sends a token
//
// What is no sum, such as an assigned value, may differ among workers. It is the first worker's that counts: when all
// others have come, it applies the update, and sends the tokens.
//
// Threads: the tasks of the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/mailbox.h"
#include "engine/worker.h"

namespace tandem {

class UpdateRounds {
 public:
  explicit UpdateRounds(Worker& worker);
  UpdateRounds(const UpdateRounds&) = delete;
  UpdateRounds& operator=(const UpdateRounds&) = delete;

  // Blocks until every round of the variable to which this worker has given a part is applied.
  void await(const std::string& variable);

  // Applies the update of a round; gets the sums of the parts.
  using Apply = std::function<void(const std::vector<Tensor>& sums)>;
  // Takes part in the next round of a variable that `server` keeps. Adds each of the parts of sums, which are on that
  // device and have arrived there, to those of the other workers. Calls `apply` on one worker, when all take part: the
  // last one, or without parts the first of the cluster, which blocks until then.
  void give(const std::string& variable, Device& server, const std::vector<Tensor>& parts, const Apply& apply);

 private:
  struct Rounds {
    std::int64_t given = 0, applied = 0;
    std::int64_t come = 0;                     // without parts: the times that other workers have come, on the first
    std::shared_ptr<SharedTensor> arrivals{};  // its version counts the parts of all workers; its values mean nothing
    std::vector<std::shared_ptr<SharedTensor>> sums{};
  };
  void await(const std::string& variable, const Rounds& rounds);
  Rounds& opened(const std::string& variable, Device& server, const std::vector<Tensor>& parts);
  bool add(Rounds& rounds, const std::string& variable, const std::vector<Tensor>& parts, const Apply& apply);
  bool lead(Rounds& rounds, const std::string& variable, const Apply& apply);

  Worker& worker_;
  std::int64_t workers_ = 0;                           // that take part
  int first_ = 0;                                      // of them
  std::vector<std::shared_ptr<Mailbox>> others_;       // for tokens to the other workers; each names a variable
  std::shared_ptr<Mailbox> tokens_;                    // to this one
  std::shared_ptr<Mailbox> come_;                      // to the first one, from those that come without a part
  std::unique_ptr<Monitor> monitor_;                   // guards rounds_
  std::map<std::string, Rounds, std::less<>> rounds_;  // by variable
};

}  // namespace tandem
