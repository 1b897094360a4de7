#include "engine/sim/collectives/collective_call.h"

#include <algorithm>
#include <cmath>

#include "engine/base/core_rules.h"
#include "engine/sim/collectives/collective_effects.h"
#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/collectives/collective_model.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {

CollectiveCall::CollectiveCall(SimRun& run, const CollectiveGroup& group, const CollectiveSpec& spec, int first_caller,
                               std::int64_t sequence)
    : run_(run),
      group_(group),
      spec_(spec),
      first_caller_(first_caller),
      sequence_(sequence),
      arrivals_(group.place_count()),
      outputs_(group.place_count()) {}

std::size_t CollectiveCall::place_of(int rank) const {
  return static_cast<std::size_t>(group_.place_of(rank));
}

void CollectiveCall::join(int caller, const CollectiveSpec& spec) const {
  if (spec == spec_) return;
  throw call_mismatch(sequence_, group_.name_of_caller(caller), spec, group_.name_of_caller(first_caller_), spec_);
}

void CollectiveCall::set_tensors(int rank, const Tensor& output, const Tensor& input) {
  const std::size_t place = place_of(rank);
  outputs_[place] = output;
  outputs_[place].lend();
  if (output.is_same(input)) return;
  inputs_.resize(outputs_.size());
  inputs_[place] = input;
  inputs_[place].lend();
}

double CollectiveCall::bytes() const {
  return static_cast<double>(spec_.buffer_bytes(static_cast<int>(group_.devices().size())));
}

void CollectiveCall::arrive(int rank, SimStream& stream, Record record, double issued_s,
                            std::optional<double> timeout_s, RecordListener* listener) {
  const double arrival_s = std::max(issued_s, Simulation::now_s());
  record.start_ns = std::llround(arrival_s * 1e9);
  record.ranks = static_cast<int>(group_.devices().size());
  if (run_.symmetry() != nullptr) record.calls = run_.symmetry()->calls_of(group_);
  record.sequence = sequence_;
  record.bytes = bytes();
  arrivals_[place_of(rank)] = {&stream, record, listener};
  last_arrival_s_ = std::max(last_arrival_s_, arrival_s);
  if (timeout_s) {
    deadline_.add(run_.simulation(), arrival_s, *timeout_s, [this, rank, seconds = *timeout_s] {
      guarded(run_.scheduler(), [&] { miss_deadline(rank, seconds); });
    });
  }
  if (arrived_ == 0 || steps_) {
    guarded(run_.scheduler(), [&] { steps_ = run_.nccl().begin_part(run_, *this, rank, arrival_s, steps_); });
  }
  if (++arrived_ == arrivals_.size()) return start(stream);
  stream.begin_wait();
}

// In memory that all ranks share, the threads of ranks that wait help, if there is work for them; as many are woken as
// there are cores.
void CollectiveCall::wake_helpers(const SimStream& last) const {
  Cores::Node* const node = last.sim_device().threads();
  if (node == nullptr) return;
  const int cores = std::min(node->figures.cores, static_cast<int>(arrivals_.size()));
  double left = std::min(std::ceil(bytes() / kCollectiveBlockBytes), static_cast<double>(cores)) - 1;
  for (const Arrival& arrival : arrivals_) {
    SimStream& stream = *arrival.stream;
    if (&stream == &last || stream.sim_device().threads() != node) continue;
    if (!stream.thread()->is_spinning() && --left < 0) continue;
    run_.cores().run(*stream.thread(), node, [] {});
  }
  run_.cores().serve_line(*node);
}

void CollectiveCall::start(const SimStream& last) {
  finisher_ = last.sim_device().threads();
  wake_helpers(last);
  auto self = shared_from_this();
  const auto begin = [self] {
    guarded(self->run_.scheduler(), [&] { simulate(self->run_, *self, [self] { self->end(); }); });
    self->steps_.reset();  // which keep themselves until the end, and know this call now
  };
  if (last_arrival_s_ <= Simulation::now_s()) return begin();
  run_.simulation().at(last_arrival_s_, begin);
}

void CollectiveCall::miss_deadline(int rank, double timeout_s) const {
  const std::vector<DeviceId> ids = group_.device_ids();
  throw deadline_exceeded(text(), ids, ids[static_cast<std::size_t>(rank)], timeout_s);
}

void CollectiveCall::end() {
  deadline_.call_off();
  if (run_.carries_values()) apply_effects(spec_, outputs(), inputs());
  outputs_.clear();
  inputs_.clear();
  for (Arrival& arrival : arrivals_) {
    arrival.record.algorithm = algorithm_;
    if (arrival.stream->thread() == nullptr) add_record(arrival);
  }
  for (Arrival& arrival : arrivals_) {
    if (arrival.stream->thread() == nullptr) {
      arrival.stream->finish_head();
    } else {
      const auto self = shared_from_this();
      arrival.stream->go_on(finisher_, [self, &arrival] {
        self->add_record(arrival);
        arrival.stream->finish_head();
      });
    }
  }
}

void CollectiveCall::add_record(Arrival& arrival) const {
  arrival.record.end_ns = Simulation::now_ns();
  run_.add_record(arrival.record);
  if (arrival.listener != nullptr) arrival.listener->ended(arrival.record);
}

std::string CollectiveCall::text() const {
  return call_text(spec_.kind, spec_.purpose, sequence_, group_.device_ids(), [this](int rank) {
    return group_.place_of(rank) < 0 || arrivals_[place_of(rank)].stream != nullptr;
  });
}

void CollectiveWork::start(SimStream& stream) {
  call_->arrive(rank_, stream, record_, issued_s, timeout_s_, listener_);
}

}  // namespace tandem::sim
