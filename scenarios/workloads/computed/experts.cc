#include "scenarios/workloads/computed/experts.h"

#include "engine/layer_ops.h"

namespace tandem {
namespace {

std::size_t combination_after(const StageState& state, std::size_t dispatch) {
  std::size_t layer = dispatch;
  while (state.flow(layer).kind != LayerFlow::Kind::combine) ++layer;
  return layer;
}

std::int64_t experts_of(const StageState& state, std::size_t dispatch) {
  return state.whole(dispatch + 1).gemm->experts;
}

}  // namespace

// With sequence parallelism, devices that have parts of the experts' weights gather their rows.
std::int64_t gathering_devices(const StageState& state, std::size_t dispatch) {
  const LayerDivision& division = state.part().division;
  const Layer& experts = state.whole(dispatch + 1);
  return division.divides_rows && experts.divided_by() != Layer::Split::none ? division.parts_of(experts) : 1;
}

ExpertRows::ExpertRows(StageState& state, std::size_t dispatch, int number, std::int64_t columns)
    : state_(state),
      number_(number),
      rows_(state.layer(dispatch).routing->rows),
      columns_(columns),
      all_experts_(experts_of(state, dispatch)),
      row_parts_(gathering_devices(state, dispatch)) {}

void ExpertRows::keep(Place place, std::size_t dispatch) {
  kept_at_ = same_as(place);
  kept_ = state_.keep(dispatch, all_experts_ * rows_, columns_, state_.dtype(), false);
}

void ExpertRows::leave(Place place) {
  kept_ = state_.leave(all_experts_ * rows_ * (is_of_all(place) ? row_parts_ : 1), columns_);
  if (kept_) kept_at_ = same_as(place);
}

// Where nothing is exchanged between two places, they are one.
ExpertRows::Place ExpertRows::same_as(Place place) const {
  if (place == Place::by_expert && sources() == 1) place = Place::gathered;
  if (place == Place::gathered && row_parts_ == 1) place = Place::arrived;
  if (place == Place::arrived && state_.part().division.expert == 1) place = Place::home;
  return place;
}

Tensor ExpertRows::at(Place place, const Pass& pass) const {
  const std::int64_t of_device = all_experts_ * rows(pass) * columns_;
  const std::int64_t elements = is_of_all(place) ? of_device * row_parts_ : of_device;
  place = same_as(place);
  if (kept_at_ == place) return kept_.at(pass).flat_slice(0, elements);
  constexpr int kPlaces = 4;
  return state_.scratch(StageState::Use::experts, elements, number_ * kPlaces + static_cast<int>(place));
}

Tensor ExpertRows::shaped(Place place, const Pass& pass) const {
  if (place == Place::home) return at(place, pass).view(0, {all_experts_, rows(pass), columns_});
  return at(place, pass).view(0, {experts(), sources() * rows(pass), columns_});
}

Exchanged ExpertRows::to_experts(const Pass& pass) const {
  return {.whole = at(Place::arrived, pass), .part = at(Place::home, pass)};
}

Exchanged ExpertRows::from_experts(const Pass& pass) const {
  return {.whole = at(Place::home, pass), .part = at(Place::arrived, pass)};
}

Exchanged ExpertRows::of_rows(const Pass& pass) const {
  return {.whole = at(Place::gathered, pass), .part = at(Place::arrived, pass)};
}

void ExpertRows::copy(const Pass& pass, bool to_experts) const {
  if (sources() == 1) return;
  const Tensor gathered = at(Place::gathered, pass), by_expert = at(Place::by_expert, pass);
  const std::int64_t block = rows(pass) * columns_;
  const std::array<std::int64_t, 4> by_source{0, block * experts(), block, 1},
      in_expert{0, block, block * sources(), 1};
  state_.launch(op::copy_strided(to_experts ? by_expert : gathered, to_experts ? gathered : by_expert,
                                 {.sizes = {1, sources(), experts(), block},
                                  .to_strides = to_experts ? in_expert : by_source,
                                  .from_strides = to_experts ? by_source : in_expert}));
}

// Backward passes need the rows that the experts had, and what came back from them. Gradients of weights read those of
// what the experts made.
ExpertTensors::ExpertTensors(StageState& state, std::size_t first)
    : weights(state.keep(first, state.layer(first).routing->rows, experts_of(state, first), state.dtype(), false)),
      dispatch(first),
      combination(combination_after(state, first)),
      tokens(state, first, 0, state.whole(first).routing->columns),
      made(state, first, 1, state.whole(combination).routing->columns),
      of_made(state, first, 2, state.whole(combination).routing->columns),
      of_tokens(state, first, 3, state.whole(first).routing->columns) {
  tokens.keep(ExpertRows::Place::arrived, first);
  made.keep(ExpertRows::Place::home, first);
  of_made.leave(ExpertRows::Place::by_expert);
}

}  // namespace tandem
