#include "strategies/parallel/sharded_parameters.h"

#include <algorithm>

#include "strategies/cross_device/host_values.h"

namespace tandem {

ShardedParameters::ShardedParameters(Device& device, Device& host, GroupCollectives& group, int rank,
                                     std::span<const Unit> units, DType dtype, bool adds_passes, int lasting)
    : device_(device), group_(group), adds_passes_(adds_passes), lasting_(lasting) {
  std::array<std::int64_t, 3> largest{};
  for (const Unit& unit : units) {
    counts_.push_back(unit.count);
    pieces_.push_back(make_piece(unit, rank, dtype, host));
    std::int64_t& room = largest[slot(this->units() - 1)];
    room = std::max(room, padded(this->units() - 1));
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (largest[i] == 0) continue;
    buffers_[i].memory = filled(dtype, largest[i]);
    gradients_[i].memory = filled(dtype, largest[i]);  // the padding is summed as well and needs defined values
  }
  hold_gathering();
}

Tensor ShardedParameters::filled(DType dtype, std::int64_t count) const {
  Tensor tensor = device_.allocate(dtype, {count});
  compute().launch(op::fill(tensor, 0));
  return tensor;
}

ShardedParameters::Piece ShardedParameters::make_piece(const Unit& unit, int rank, DType dtype, Device& host) const {
  const std::int64_t count = (unit.count + group_.size() - 1) / group_.size();
  Piece piece{.parameters = filled(dtype, count), .gradients = filled(dtype, count)};
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
  group_.all_gather(buffer.memory.flat_slice(0, padded(unit)), piece(unit), communication());
  buffer.ready = communication().record();
  buffer.unit = unit;
}

Tensor ShardedParameters::acquire(int unit) {
  prefetch(unit);
  compute().wait(buffers_[slot(unit)].ready);
  return buffers_[slot(unit)].memory.flat_slice(0, count(unit));
}

void ShardedParameters::release(int unit) {
  buffers_[slot(unit)].used = compute().record();
}

Tensor ShardedParameters::gradients(int unit) {
  compute().wait(gradients_[slot(unit)].reduced);
  return gradients_[slot(unit)].memory.flat_slice(0, count(unit));
}

void ShardedParameters::reduce_gradients(int unit, bool is_first_pass) {
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
    compute().wait(piece.reduced);
    sums.push_back(piece.gradients);
    parts.push_back(piece.of_pass);
  }
  model.accumulate(parameters, sums, parts);
}

void ShardedParameters::update(StageModel& model) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    compute().wait(pieces_[i].reduced);
    const auto& [parameters, gradients, of_pass, reduced] = pieces_[i];
    model.update(parameters, gradients, moments_.of(i, parameters, model.moments()), steps_);
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
