#include "engine/sim/collectives/steps/step_player.h"

namespace tandem::sim::steps {

void StepPlayer::come(int gpu, double date_s) {
  simulation_.at(date_s + graph().lead_s, [self = shared_from_this(), gpu] {
    self->progress_.come(gpu, self->starting_);
    self->start_all();
    self->end_if_over();
  });
}

void StepPlayer::finish_with(Simulation::Then then) {
  then_ = std::move(then);
  if (progress_.is_over()) simulation_.at(Simulation::now_s(), [self = shared_from_this()] { self->end_if_over(); });
}

void StepPlayer::end_if_over() {
  if (!progress_.is_over() || !then_) return;
  const Simulation::Then then = std::move(then_);
  then();
}

void StepPlayer::start_all() {
  for (const int transfer : starting_) start_one(transfer);
  starting_.clear();
}

void StepPlayer::start_one(int transfer) {
  const Transfer& one = graph().transfer(transfer);
  const auto at_end = [self = shared_from_this(), transfer] { self->end_copy(transfer); };
  if (one.bytes < 1) return simulation_.at(Simulation::now_s() + one.copy_s, at_end);  // SimGrid counts whole bytes
  const PlacedGraph::Way& way = placed_->ways[static_cast<std::size_t>(one.edge)];
  network_.start_together({{way.pair, way.route, one.bytes, one.bytes / one.copy_s}}, at_end);
}

// Equal transfers end together, and what they have sent arrives together.
void StepPlayer::end_copy(int transfer) {
  const double date_s = Simulation::now_s() + graph().latency_s(transfer);
  std::vector<int>& together = on_their_way_[date_s];
  together.push_back(transfer);
  if (together.size() == 1) simulation_.at(date_s, [self = shared_from_this(), date_s] { self->arrive(date_s); });
  progress_.sent(transfer, starting_);
  start_all();
}

void StepPlayer::arrive(double date_s) {
  const auto arriving = on_their_way_.extract(date_s);
  for (const int transfer : arriving.mapped()) progress_.arrived(transfer, starting_);
  start_all();
  end_if_over();
}

}  // namespace tandem::sim::steps
