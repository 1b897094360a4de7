// A mixture of experts: a router chooses some experts for each row of tokens, each of these computes on the row, and
// the results are added up, weighted by the router's probabilities (Shazeer and others, arXiv:1701.06538; the weights
// are not normalized to a sum of 1, as in Fedus and others, arXiv:2101.03961).
//
// Every expert has room for all rows; zeros are in the place of rows that do not use it. No row is dropped, whatever
// devices divide the experts. Only where two experts are as probable to the last digit, another order of sums may
// choose the other one.
#pragma once

#include <memory>
#include <optional>

#include "scenarios/workloads/computed/computed_layer.h"

namespace tandem {

// Returns how many devices gather their rows for experts: 1, or those of sequence parallelism.
std::int64_t gathering_devices(const StageState& state, std::size_t dispatch);

// Rows on their way between the device whose rows they are and those that have the experts, in either direction.
class ExpertRows {
 public:
  // home: [expert, row, column], of this device's rows and all experts. arrived: [device, expert, row, column], of the
  // rows of all devices that divide the experts, and of this device's experts. gathered: the same of all devices that
  // divide rows by sequence parallelism, these first. by_expert: [expert, row of all of them, column].
  enum class Place : std::uint8_t { home, arrived, gathered, by_expert };

  // Memory that other mixtures use, too, for rows with the same `number`.
  ExpertRows(StageState& state, std::size_t dispatch, int number, std::int64_t columns);
  // Has rows of its own for each pass at a place: what forward passes keep, or what backward passes leave for the
  // gradients of weights.
  void keep(Place place, std::size_t dispatch);
  void leave(Place place);

  Tensor home(const Pass& pass) const { return shaped(Place::home, pass); }
  Tensor by_expert(const Pass& pass) const { return shaped(Place::by_expert, pass); }
  // Copies what was gathered to by_expert(), and back; nothing where both are the same.
  void order_by_expert(const Pass& pass) const { copy(pass, true); }
  void order_by_device(const Pass& pass) const { copy(pass, false); }

  // The operands of exchanges among the devices that divide the experts, and among those that divide rows.
  Exchanged to_experts(const Pass& pass) const;
  Exchanged from_experts(const Pass& pass) const;
  Exchanged of_rows(const Pass& pass) const;

 private:
  std::int64_t experts() const { return all_experts_ / state_.part().division.expert; }  // of this device
  std::int64_t sources() const { return row_parts_ * state_.part().division.expert; }
  Place same_as(Place place) const;
  static bool is_of_all(Place place) { return place == Place::gathered || place == Place::by_expert; }
  std::int64_t rows(const Pass& pass) const { return pass.examples * rows_; }
  Tensor at(Place place, const Pass& pass) const;  // flat
  Tensor shaped(Place place, const Pass& pass) const;
  void copy(const Pass& pass, bool to_experts) const;

  StageState& state_;
  int number_;
  std::int64_t rows_, columns_, all_experts_;
  std::int64_t row_parts_;  // devices that divide rows, and gather them for the experts
  std::optional<Place> kept_at_{};
  Kept kept_{};
};

// What the layers of one mixture share.
struct ExpertTensors {
  ExpertTensors(StageState& state, std::size_t first);

  Kept weights;  // of each row, for all experts: the router's probabilities, 0 where a row does not use an expert
  std::size_t dispatch;     // the layer that sends rows to the experts
  std::size_t combination;  // the layer that combines what the experts made
  ExpertRows tokens, made, of_made, of_tokens;
};

// Makes a layer of the mixture that `experts` is of: what sends rows to experts, computes on them, or combines them.
std::unique_ptr<ComputedLayer> make_expert_layer(StageState& state, std::size_t layer,
                                                 std::shared_ptr<ExpertTensors> experts);

}  // namespace tandem
