#include "engine/sim/collectives/collective_work.h"

#include <fmt/format.h>

#include <cstring>
#include <tuple>

#include "engine/sim/sim_run.h"
#include "engine/sim/stream_work.h"

namespace tandem::sim {
namespace {

void end(SimRun& run, PairCall& pair) {
  if (run.carries_values() && pair.from.size_bytes() > 0) {
    std::memmove(pair.to.data(), pair.from.data(), pair.from.size_bytes());
  }
  pair.deadline.call_off();
  pair.send_record.end_ns = pair.receive_record.end_ns = Simulation::now_ns();
  run.add_record(std::move(pair.send_record));
  run.add_record(std::move(pair.receive_record));
  pair.from = pair.to = {};
  pair.sender->finish_head();
  pair.receiver->finish_head();
}

// Both ends are there.
void start_pair(SimRun& run, const std::shared_ptr<PairCall>& pair) {
  if (pair->from.dtype() != pair->to.dtype() || pair->from.element_count() != pair->to.element_count()) {
    throw RunError(
        fmt::format("send of {}{} from {} meets receive of {}{} on {}: both must have the same type and size",
                    name_of(pair->from.dtype()), pair->from.shape().text(), pair->sender->sim_device().name(),
                    name_of(pair->to.dtype()), pair->to.shape().text(), pair->receiver->sim_device().name()));
  }
  SimDevice& from = pair->sender->sim_device();
  SimDevice& to = pair->receiver->sim_device();
  const double overhead_s = std::max(from.costs().op_overhead_s(), to.costs().op_overhead_s());
  run.simulation().at(Simulation::now_s() + overhead_s, [&run, &from, &to, pair] {
    guarded(run.scheduler(), [&] {
      move_bytes(from, to, static_cast<double>(pair->from.size_bytes()), true, [&run, pair] { end(run, *pair); });
    });
  });
}

}  // namespace

void CollectiveWork::start(SimStream& stream) {
  call_->arrive(rank_, stream, std::move(record_), issued_s, timeout_s_);
}

void PairWork::start(SimStream& stream) {
  record_.start_ns = Simulation::now_ns();
  if (is_sender_) {
    pair_->sender = &stream;
    pair_->from = tensor_;
    pair_->send_record = std::move(record_);
  } else {
    pair_->receiver = &stream;
    pair_->to = tensor_;
    pair_->receive_record = std::move(record_);
  }
  if (timeout_s_) {
    pair_->deadline.add(stream.sim_device().run().simulation(), Simulation::now_s(), *timeout_s_, [this, &stream] {
      guarded(stream.sim_device().run().scheduler(), [&] { miss_deadline(stream.sim_device()); });
    });
  }
  if (pair_->sender != nullptr && pair_->receiver != nullptr) start_pair(stream.sim_device().run(), pair_);
}

void PairWork::miss_deadline(const SimDevice& self) const {
  const bool has_begun = pair_->sender != nullptr && pair_->receiver != nullptr;
  const std::string arrived = has_begun ? "2 of 2 devices arrived" : "1 of 2 devices arrived; missing " + peer_.name();
  const auto& [from, to] = is_sender_ ? std::tie(self, peer_) : std::tie(peer_, self);
  throw deadline_exceeded(fmt::format("send and receive #{} ({})", pair_->sequence, arrived), {from.id(), to.id()},
                          self.id(), *timeout_s_);
}

std::string PairWork::text() const {
  return fmt::format("{} {} #{}", is_sender_ ? "send to" : "receive from", peer_.name(), pair_->sequence);
}

}  // namespace tandem::sim
