#include "strategies/parallel/sharded_parameters.h"

#include <algorithm>

#include "strategies/cross_device/host_values.h"

namespace tandem {

ShardedParameters::ShardedParameters(Device& device, Device& host, GroupCollectives& group, int rank,
                                     std::span<const Unit> units, DType dtype, bool adds_passes, int lasting)
    : device_(device), group_(group), adds_passes_(adds_passes), lasting_(lasting) {
  std::array<std::int64_t, 3> largest{}, largest_gradients{};
  for (const Unit& unit : units) {
    counts_.push_back(unit.count);
    pieces_.push_back(make_piece(unit, rank, dtype, host));
    const int last = this->units() - 1;
    largest[slot(last)] = std::max(largest[slot(last)], gathered(last));
    largest_gradients[slot(last)] = std::max(largest_gradients[slot(last)], padded(last));
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (largest[i] == 0) continue;
    buffers_[i].memory = filled(dtype, largest[i]);
    if (largest_gradients[i] == 0) continue;
    gradients_[i].memory = filled(dtype, largest_gradients[i]);  // the padding is summed, too: it needs defined values
  }
  hold_gathering();
}

Tensor ShardedParameters::filled(DType dtype, std::int64_t count) const {
  Tensor tensor = device_.allocate(dtype, {count});
  compute().launch(op::fill(tensor, 0));
  return tensor;
}

ShardedParameters::Piece ShardedParameters::make_piece(const Unit& unit, int rank, DType dtype, Device& host) const {
  const auto part_of_all = [this](std::int64_t all) { return (all + group_.size() - 1) / group_.size(); };
  const std::int64_t count = part_of_all(unit.count), frozen = part_of_all(unit.frozen);
  Piece piece{.gathered = filled(dtype, count + frozen)};
  if (count == 0) return piece;
  piece.parameters = frozen == 0 ? piece.gathered : piece.gathered.flat_slice(0, count);
  piece.gradients = filled(dtype, count);
  if (adds_passes_) piece.of_pass = filled(dtype, count);
  if (!unit.initial_value) return piece;
  const auto value = [all = unit.count, value = unit.initial_value, first = rank * count](std::int64_t element) {
    return first + element < all ? value(first + element) : 0.0;
  };
  const Tensor initial = host_tensor(host, dtype, {count}, value);
  compute().wait(host.compute_stream().record());
  compute().copy(piece.parameters, initial, Category::other);
  return piece;
}

void ShardedParameters::prefetch(int unit) {
  Buffer& buffer = buffers_[slot(unit)];
  if (buffer.unit == unit) return;
  communication().wait(buffer.used);
  group_.all_gather(buffer.memory.flat_slice(0, gathered(unit)), pieces_[static_cast<std::size_t>(unit)].gathered,
                    communication());
  buffer.ready = communication().record();
  buffer.unit = unit;
}

Tensor ShardedParameters::acquire(int unit) {
  prefetch(unit);
  compute().wait(buffers_[slot(unit)].ready);
  return learns(unit) ? buffers_[slot(unit)].memory.flat_slice(0, count(unit)) : Tensor();
}

void ShardedParameters::release(int unit) {
  buffers_[slot(unit)].used = compute().record();
}

Tensor ShardedParameters::gradients(int unit) {
  if (!learns(unit)) return {};
  compute().wait(gradients_[slot(unit)].reduced);
  return gradients_[slot(unit)].memory.flat_slice(0, count(unit));
}

void ShardedParameters::reduce_gradients(int unit, bool is_first_pass) {
  if (!learns(unit)) return;
  Piece& piece = pieces_.at(static_cast<std::size_t>(unit));
  GradientBuffer& buffer = gradients_[slot(unit)];
  communication().wait(compute().record());
  group_.reduce_scatter(is_first_pass || !adds_passes_ ? piece.gradients : piece.of_pass,
                        buffer.memory.flat_slice(0, padded(unit)), communication());
  buffer.reduced = communication().record();
  piece.reduced = buffer.reduced;
}

void ShardedParameters::accumulate(StageModel& model, std::int64_t parameters) {
  std::vector<Tensor> sums, parts;
  for (const Piece& piece : pieces_) {
    if (!adds_passes_) break;
    if (!piece.parameters) continue;
    compute().wait(piece.reduced);
    sums.push_back(piece.gradients);
    parts.push_back(piece.of_pass);
  }
  model.accumulate(parameters, sums, parts);
}

void ShardedParameters::update(StageModel& model) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (!piece.parameters) continue;
    compute().wait(piece.reduced);
    model.update(piece.parameters, piece.gradients, moments_.of(i, piece.parameters, model.moments()), steps_);
  }
  ++steps_;
  hold_gathering();
}

void ShardedParameters::hold_gathering() {
  const Event changed = compute().record();
  for (Buffer& buffer : buffers_) {
    buffer.unit = -1;  // it holds the old parameters
    buffer.used = changed;
  }
}

}  // namespace tandem
