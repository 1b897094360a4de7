#include "strategies/parallel/stages/whole_stage_parameters.h"

#include <algorithm>
#include <cmath>

#include "strategies/parallel/stages/streams.h"

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
    const Bucket& bucket = buckets_.buckets()[i];
    const LayerTensors tensors = updated(bucket);
    const std::int64_t count = tensors.parameters.element_count();
    const auto of_host = static_cast<std::int64_t>(std::llround(host_share_ * static_cast<double>(count)));
    const std::int64_t here = count - of_host;
    const auto some = [](const LayerTensors& all, std::int64_t first, std::int64_t number) {
      return LayerTensors{all.parameters.flat_slice(first, number), all.gradients.flat_slice(first, number)};
    };
    if (of_host > 0) {
      update_on_host(i, some(tensors, here, of_host), read_parameters(bucket).flat_slice(here, of_host), model);
    }
    if (here > 0 || of_host == 0) update_here(i, some(tensors, 0, here), model);
  }
  ++steps_;
  if (host_ != nullptr) device_.compute_stream().wait(device_.stream(kFromHostStream).record());
  if (settings_.divides_state && !settings_.overlaps_gather) gather();
}

void WholeStageParameters::update_on(Device& host, double share) {
  host_ = &host;
  host_share_ = share;
  on_host_.resize(dates_.size());
}

void WholeStageParameters::update_here(std::size_t piece, const LayerTensors& tensors, StageModel& model) {
  model.update(tensors.parameters, tensors.gradients, moments_.of(piece, tensors.parameters, model.moments()), steps_);
  model.finish_update(tensors.gradients.element_count(), tensors.gradients);
}

// Gradients go down while others are summed or updated, and parameters come up in the type that kernels read.
void WholeStageParameters::update_on_host(std::size_t piece, const LayerTensors& tensors, const Tensor& read,
                                          StageModel& model) {
  OnHost& mine = on_host_[piece];
  if (!mine.parameters) {
    mine.parameters = host_->allocate(tensors.parameters.dtype(), {tensors.parameters.element_count()});
    mine.gradients = host_->allocate(tensors.gradients.dtype(), {tensors.gradients.element_count()});
    mine.read = read.dtype() == tensors.parameters.dtype() ? mine.parameters
                                                           : host_->allocate(read.dtype(), {read.element_count()});
  }
  Stream &down = device_.stream(kToHostStream), &up = device_.stream(kFromHostStream), &host = host_->compute_stream();
  down.wait(device_.compute_stream().record());
  down.copy(mine.gradients, tensors.gradients, Category::input);
  host.wait(down.record());
  model.update(mine.parameters, mine.gradients, host_moments_.of(piece, mine.parameters, model.moments()), steps_);
  model.finish_update(mine.gradients.element_count(), mine.gradients);
  up.wait(host.record());
  up.copy(read, mine.read, Category::input);
}

// Returns what kernels read of what this device updates, or what is gathered for them.
Tensor WholeStageParameters::read_parameters(const Bucket& bucket) const {
  if (!settings_.divides_state) return parameters_.flat_slice(bucket.first, bucket.count);
  if (is_divided(bucket)) return my_used_.flat_slice(bucket.part_first, bucket.part_count);
  return used_.flat_slice(bucket.first, bucket.count);
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
