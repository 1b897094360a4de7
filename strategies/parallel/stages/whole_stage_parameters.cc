#include "strategies/parallel/stages/whole_stage_parameters.h"

#include <algorithm>

namespace tandem {

WholeStageParameters::WholeStageParameters(Device& device, GradientBuckets buckets, const Settings& settings)
    : device_(device), buckets_(std::move(buckets)), settings_(settings), dates_(buckets_.buckets().size()) {
  const auto filled = [&device](std::int64_t count, DType dtype) {
    Tensor tensor = device.allocate(dtype, {std::max<std::int64_t>(1, count)});
    device.compute_stream().launch(op::fill(tensor, 0));
    return tensor;
  };
  if (!settings.divides_state) parameters_ = filled(buckets_.size(), settings.types.stored);
  gradients_ = filled(buckets_.size(), settings.types.stored);
  if (!settings.divides_state) return;
  my_parameters_ = filled(buckets_.size_of_parts(), settings.types.stored);
  my_used_ = settings.types.used == settings.types.stored ? my_parameters_
                                                          : filled(buckets_.size_of_parts(), settings.types.used);
  used_ = filled(buckets_.size(), settings.types.used);
}

Tensor WholeStageParameters::used(std::int64_t first, std::int64_t count) const {
  if (settings_.divides_state) return used_.flat_slice(first, count);
  return settings_.types.used == settings_.types.stored ? parameters_.flat_slice(first, count) : Tensor();
}

// The parts of a bucket follow each other, so that a device's part begins at a multiple of the part's size.
void WholeStageParameters::set(std::int64_t first, const Tensor& values) {
  const auto copy = [this](const Tensor& to, const Tensor& from) {
    device_.compute_stream().copy(to, from, Category::other);
  };
  const std::int64_t count = values.element_count();
  if (!settings_.divides_state) return copy(parameters_.flat_slice(first, count), values);
  copy(used_.flat_slice(first, count), values);
  for (const Bucket& bucket : buckets_.buckets()) {
    const std::int64_t mine = first_of_part(bucket);
    const std::int64_t begin = std::max(first, mine), end = std::min(first + count, mine + bucket.part_count);
    if (begin >= end) continue;
    copy(my_parameters_.flat_slice(bucket.part_first + begin - mine, end - begin),
         values.flat_slice(begin - first, end - begin));
  }
}

void WholeStageParameters::begin_step() {
  if (settings_.overlaps_gather) gather();
}

void WholeStageParameters::wait_for(std::int64_t first, std::int64_t count) const {
  for (std::size_t i = 0; i < dates_.size(); ++i) {
    const Bucket& bucket = buckets_.buckets()[i];
    if (bucket.first < first + std::max<std::int64_t>(1, count) && first < bucket.first + bucket.count) {
      device_.compute_stream().wait(dates_[i].gathered);
    }
  }
}

void WholeStageParameters::reduce_from(std::size_t layer) {
  for (; reduced_ < dates_.size() && buckets_.buckets()[reduced_].last_layer >= layer; ++reduced_) {
    const Bucket& bucket = buckets_.buckets()[reduced_];
    const bool has_copies = settings_.divides_state && bucket.copies != nullptr;
    if (bucket.group->size() == 1 && !has_copies) continue;
    Stream& stream = device_.stream(kCommunicationStream);
    stream.wait(device_.compute_stream().record());
    if (is_divided(bucket)) {
      bucket.group->reduce_scatter(my_gradients(bucket), gradients(bucket.first, bucket.padded_count()), stream);
    } else if (bucket.group->size() > 1) {
      bucket.group->all_reduce(gradients(bucket.first, bucket.count), stream);
    }
    if (has_copies) bucket.copies->all_reduce(my_gradients(bucket), stream);
    dates_[reduced_].reduced = stream.record();
  }
}

void WholeStageParameters::wait_until_reduced() const {
  for (const Dates& dates : dates_) device_.compute_stream().wait(dates.reduced);
}

void WholeStageParameters::update(StageModel& model) {
  for (std::size_t i = 0; i < dates_.size(); ++i) {
    device_.compute_stream().wait(dates_[i].reduced);
    const LayerTensors tensors = updated(buckets_.buckets()[i]);
    model.update(tensors.parameters, tensors.gradients, moments_.of(i, tensors.parameters, model.moments()), steps_);
    model.finish_update(tensors.gradients.element_count(), tensors.gradients);
  }
  ++steps_;
  if (settings_.divides_state && !settings_.overlaps_gather) gather();
}

// The sums of a device's part take the place of its own gradients.
Tensor WholeStageParameters::my_gradients(const Bucket& bucket) const {
  return gradients(first_of_part(bucket), bucket.part_count);
}

std::int64_t WholeStageParameters::first_of_part(const Bucket& bucket) const {
  return bucket.first + bucket.group->rank_of(device_) * bucket.part_count;
}

// Returns what this device updates: a part of the bucket if the group divides it.
LayerTensors WholeStageParameters::updated(const Bucket& bucket) const {
  const Tensor gradients = gradients_.flat_slice(bucket.first, bucket.count);
  if (!settings_.divides_state) return {parameters_.flat_slice(bucket.first, bucket.count), gradients};
  const Tensor mine = my_parameters_.flat_slice(bucket.part_first, bucket.part_count);
  if (is_divided(bucket)) return {mine, my_gradients(bucket)};
  return {settings_.types.used == settings_.types.stored ? used_.flat_slice(bucket.first, bucket.count) : mine,
          gradients};
}

// Gathers in the order in which the next step needs parameters; those of the first layers were updated last.
void WholeStageParameters::gather() {
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(device_.compute_stream().record());
  for (std::size_t i = dates_.size(); i-- > 0;) {
    const Bucket& bucket = buckets_.buckets()[i];
    if (!is_divided(bucket)) continue;
    const std::int64_t part = gathered_count(bucket.part_count, settings_.types.gathers_bytes && bucket.is_quantised);
    bucket.group->all_gather(used_.flat_slice(bucket.first, part * bucket.group->size()),
                             my_used_.flat_slice(bucket.part_first, part), stream);
    dates_[i].gathered = stream.record();
    if (!settings_.overlaps_gather) device_.compute_stream().wait(dates_[i].gathered);
  }
}

}  // namespace tandem
