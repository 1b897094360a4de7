// One collective of a group, from the first device that arrives to the common end. A send and its receive are one such
// call.
//
//   state       entered by                                     what happens
//   issued      CollectiveGroup::next_call(), by its first     each caller joins and hands over its tensors
//               caller
//   gathering   arrive() of a rank, when its stream has come   the rank's record starts; its timeout runs; where steps
//               to the call                                    are simulated, it begins to send
//   executing   the last arrive(), at the latest date at       simulate() occupies the devices and the network
//               which a host has issued its part
//   ended       the end of simulate()                          values move, the records end, the streams continue
//
// Called in SimGrid's kernel only (see simulation.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/sim/collectives/call_deadline.h"
#include "engine/sim/sim_stream.h"
#include "engine/sim/stream_work.h"

namespace tandem::sim {

class CollectiveGroup;
class SimRun;

namespace steps {
class StepPlayer;
}

class CollectiveCall : public std::enable_shared_from_this<CollectiveCall> {
 public:
  // `first_caller` is the one that makes the call first; see CollectiveGroup::Callers.
  CollectiveCall(SimRun& run, const CollectiveGroup& group, const CollectiveSpec& spec, int first_caller,
                 std::int64_t sequence);

  // Throws RunError naming both callers unless `spec` is that of the first one.
  void join(int caller, const CollectiveSpec& spec) const;
  // Hands over a rank's tensors; both are the same where the collective works in place.
  void set_tensors(int rank, const Tensor& output, const Tensor& input);
  // Notes that the stream of `rank` has come to this call, which its host has issued at `issued_s`. With a timeout, the
  // run fails unless the call ends within it.
  void arrive(int rank, SimStream& stream, Record record, double issued_s, std::optional<double> timeout_s,
              RecordListener* listener);

  // Names what executes the call, for its records.
  void set_algorithm(Name algorithm) { algorithm_ = algorithm; }

  // What executes the steps that ranks may do before all have come, until then; null: there are none.
  const std::shared_ptr<steps::StepPlayer>& steps() const { return steps_; }

  const CollectiveGroup& group() const { return group_; }
  const CollectiveSpec& spec() const { return spec_; }
  double bytes() const;  // nccl-tests' definition: the larger of a rank's input and output
  // Whether ops that run at the same time take longer. A receive may wait for most of a step; its kernel then keeps a
  // multiprocessor or two and moves nothing.
  static bool slows_ops(const CollectiveSpec& spec) {
    return spec.kind != CollectiveKind::send_receive && !spec.by_copy_engines;
  }
  bool slows_ops() const { return slows_ops(spec_); }
  // By rank; in runs that carry values, every rank has a place.
  std::span<const Tensor> outputs() const { return outputs_; }
  // By rank; the outputs, where the collective works in place.
  std::span<const Tensor> inputs() const { return inputs_.empty() ? outputs_ : inputs_; }
  std::string text() const;  // "all_reduce #5 (4 of 8 devices arrived; missing /job:...)"

 private:
  struct Arrival {
    SimStream* stream = nullptr;
    Record record;
    RecordListener* listener = nullptr;
  };

  void start(const SimStream& last);
  void wake_helpers(const SimStream& last) const;
  void end();
  void add_record(Arrival& arrival) const;
  void miss_deadline(int rank, double timeout_s) const;

  SimRun& run_;
  const CollectiveGroup& group_;
  const CollectiveSpec spec_;
  const int first_caller_;
  const std::int64_t sequence_;
  std::size_t place_of(int rank) const;

  std::vector<Arrival> arrivals_;  // by place of the rank
  std::size_t arrived_ = 0;
  double last_arrival_s_ = 0;
  const Cores::Node* finisher_ = nullptr;  // of the last rank to arrive, whose thread ends the call
  std::shared_ptr<steps::StepPlayer> steps_;
  Name algorithm_;
  CallDeadline deadline_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> inputs_;  // empty where the collective works in place
};

// A stream's part in a call.
class CollectiveWork : public StreamWork {
 public:
  CollectiveWork(std::shared_ptr<CollectiveCall> call, int rank, Record record, std::optional<double> timeout_s,
                 RecordListener* listener = nullptr)
      : call_(std::move(call)), rank_(rank), record_(record), timeout_s_(timeout_s), listener_(listener) {}
  void start(SimStream& stream) override;
  std::string text() const override { return call_->text(); }
  bool starts_before_issue() const override { return true; }  // the call waits for the last issue, once for all ranks
  bool slows_ops() const override { return call_->slows_ops(); }

 private:
  std::shared_ptr<CollectiveCall> call_;
  int rank_;
  Record record_;
  std::optional<double> timeout_s_;
  RecordListener* listener_;  // null: none
};

}  // namespace tandem::sim
