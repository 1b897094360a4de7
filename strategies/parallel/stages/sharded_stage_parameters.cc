#include "strategies/parallel/stages/sharded_stage_parameters.h"

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::size_t kDense = 0, kExperts = 1, kLasting = 2;
constexpr std::size_t kLastingSlot = 4;

}  // namespace

ShardedStageParameters::ShardedStageParameters(Device& device, GradientBuckets buckets, std::span<const Layer> layers,
                                               const Settings& settings)
    : device_(device), buckets_(std::move(buckets)), settings_(settings) {
  for (const Bucket& one : buckets_.buckets()) {
    Piece& piece = pieces_.emplace_back(Piece{.stored = filled(settings.types.stored, one.part_count),
                                              .gradients = filled(settings.types.stored, one.part_count)});
    piece.used =
        settings.types.used == settings.types.stored ? piece.stored : filled(settings.types.used, one.part_count);
    if (settings.passes > 1) piece.of_pass = filled(settings.types.stored, one.part_count);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bucket_of_.push_back(layers[i].parameters() > 0 ? bucket_with(first_of(i)) : kNone);
    reads_table_.push_back(layers[i].shared_weights);
  }
  place_in_slots();
  hold_gathering();
}

Tensor ShardedStageParameters::filled(DType dtype, std::int64_t count) const {
  Tensor tensor = device_.allocate(dtype, {std::max<std::int64_t>(1, count)});
  compute().launch(op::fill(tensor, 0));
  return tensor;
}

std::size_t ShardedStageParameters::bucket_with(std::int64_t parameter) const {
  const auto has = [parameter](const Bucket& one) {
    return one.first <= parameter && parameter < one.first + one.count;
  };
  const auto found = std::ranges::find_if(buckets_.buckets(), has);
  return found == buckets_.buckets().end() ? kNone : static_cast<std::size_t>(found - buckets_.buckets().begin());
}

std::size_t ShardedStageParameters::kind_of(std::size_t index) const {
  if (settings_.table && bucket_of_[*settings_.table] == index) return kLasting;
  return bucket(index).is_of_experts ? kExperts : kDense;
}

// The padding is gathered and summed as well, and needs defined values.
void ShardedStageParameters::place_in_slots() {
  std::array<std::int64_t, 5> room{};
  std::array<std::size_t, 3> count{};
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::size_t kind = kind_of(i);
    slots_of_.push_back(kind == kLasting ? kLastingSlot : 2 * kind + count[kind]++ % 2);
    room[slots_of_.back()] = std::max(room[slots_of_.back()], bucket(i).padded_count());
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (room[i] == 0) continue;
    slots_[i].memory = filled(settings_.types.used, room[i]);
    gradients_[i].memory = filled(settings_.types.stored, room[i]);
  }
}

// What has been gathered is old once the pieces have changed.
void ShardedStageParameters::hold_gathering() {
  const Event changed = compute().record();
  for (Slot& slot : slots_) {
    slot.bucket = kNone;
    slot.used = changed;
  }
  current_.fill(kNone);
}

Tensor ShardedStageParameters::used(std::int64_t first, std::int64_t count) const {
  const std::size_t index = bucket_with(first);
  TANDEM_CHECK(index != kNone && slots_[slot_of(index)].bucket == index, "parameters that have not been gathered");
  return slots_[slot_of(index)].memory.flat_slice(first - bucket(index).first, count);
}

Tensor ShardedStageParameters::gradients(std::int64_t first, std::int64_t count) const {
  const std::size_t index = bucket_with(first);
  TANDEM_CHECK(index != kNone, "gradients of no bucket");
  return gradients_[slot_of(index)].memory.flat_slice(first - bucket(index).first, count);
}

void ShardedStageParameters::set(std::int64_t first, const Tensor& values) {
  const std::int64_t count = values.element_count();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::int64_t mine = bucket(i).first + bucket(i).group->rank_of(device_) * bucket(i).part_count;
    const std::int64_t begin = std::max(first, mine), end = std::min(first + count, mine + bucket(i).part_count);
    if (begin >= end) continue;
    compute().copy(pieces_[i].stored.flat_slice(begin - mine, end - begin),
                   values.flat_slice(begin - first, end - begin), Category::other);
  }
  hold_gathering();
}

void ShardedStageParameters::gather(std::size_t index) {
  Slot& slot = slots_[slot_of(index)];
  if (slot.bucket == index) return;
  communication().wait(slot.used);
  const Bucket& one = bucket(index);
  const std::int64_t part = gathered_count(one.part_count, settings_.types.gathers_bytes && one.is_quantised);
  one.group->all_gather(slot.memory.flat_slice(0, part * one.group->size()), pieces_[index].used.flat_slice(0, part),
                        communication());
  slot.ready = communication().record();
  slot.bucket = index;
}

void ShardedStageParameters::begin_layer(std::size_t layer, Way way) {
  if (reads_table_[layer] && settings_.table) enter(bucket_of_[*settings_.table], way);
  if (bucket_of_[layer] != kNone) enter(bucket_of_[layer], way);
}

// Buckets count from the one nearest to the output. The next one of the same kind arrives while this one is used.
// Gradients of weights read no parameters.
void ShardedStageParameters::enter(std::size_t index, Way way) {
  const std::size_t kind = kind_of(index);
  const bool makes_gradients = way == Way::backward || way == Way::weights;
  if (makes_gradients && current_gradients_[kind] != index) {
    current_gradients_[kind] = index;
    compute().wait(gradients_[slot_of(index)].reduced);
  }
  if (way == Way::weights) return;
  std::size_t& current = current_[kind];
  if (current == index) return;
  if (current != kNone) slots_[slot_of(current)].used = compute().record();
  current = index;
  gather(index);
  compute().wait(slots_[slot_of(index)].ready);
  const auto step = way == Way::forward ? std::ptrdiff_t{-1} : std::ptrdiff_t{1};
  const auto end = way == Way::forward ? std::ptrdiff_t{-1} : static_cast<std::ptrdiff_t>(pieces_.size());
  for (std::ptrdiff_t next = static_cast<std::ptrdiff_t>(index) + step; next != end; next += step) {
    if (kind_of(static_cast<std::size_t>(next)) != kind) continue;
    return gather(static_cast<std::size_t>(next));
  }
}

void ShardedStageParameters::begin_backward(StageModel& model) {
  if (passes_++ > 1) accumulate(model);
  reduced_ = 0;
  current_gradients_.fill(kNone);
}

// Adds the sums of the last pass to those of the passes before it.
void ShardedStageParameters::accumulate(StageModel& model) {
  std::vector<Tensor> sums, parts;
  std::int64_t parameters = 0;
  for (const Piece& piece : pieces_) {
    compute().wait(piece.reduced);
    sums.push_back(piece.gradients);
    parts.push_back(piece.of_pass);
    parameters += piece.gradients.element_count();
  }
  model.accumulate(parameters, sums, parts);
}

void ShardedStageParameters::reduce_from(std::size_t layer) {
  for (; reduced_ < pieces_.size() && bucket(reduced_).last_layer >= layer; ++reduced_) {
    const Bucket& done = bucket(reduced_);
    Piece& piece = pieces_[reduced_];
    GradientSlot& slot = gradients_[slot_of(reduced_)];
    communication().wait(compute().record());
    done.group->reduce_scatter(passes_ > 1 ? piece.of_pass : piece.gradients,
                               slot.memory.flat_slice(0, done.padded_count()), communication());
    slot.reduced = communication().record();
    if (settings_.passes == 1 && done.copies != nullptr) done.copies->all_reduce(piece.gradients, communication());
    piece.reduced = communication().record();
  }
}

void ShardedStageParameters::wait_until_reduced() const {
  for (const Piece& piece : pieces_) compute().wait(piece.reduced);
}

void ShardedStageParameters::update(StageModel& model) {
  if (passes_ > 1) accumulate(model);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    if (settings_.passes > 1 && bucket(i).copies != nullptr) {
      communication().wait(compute().record());
      bucket(i).copies->all_reduce(piece.gradients, communication());
      piece.reduced = communication().record();
    }
    compute().wait(piece.reduced);
    model.update(piece.stored, piece.gradients, moments_.of(i, piece.stored, model.moments()), steps_);
    model.finish_update(piece.gradients.element_count(), piece.gradients);
  }
  ++steps_;
  hold_gathering();
}

void ShardedStageParameters::update_on(Device& /*host*/, double /*share*/) {
  throw UsageError("a host updates parameters that are whole, no pieces");
}

}  // namespace tandem
