#include "scenarios/workloads/stage_parameters.h"

#include <algorithm>

#include "scenarios/workloads/layer_ops.h"

namespace tandem {
namespace {

constexpr double kStageLearningRate = 1e-3;

}  // namespace

StageParameters::StageParameters(Device& device, GradientBuckets buckets, const Settings& settings)
    : device_(device), buckets_(std::move(buckets)), settings_(settings), dates_(buckets_.buckets().size()) {
  const auto filled = [&device](std::int64_t count, DType dtype) {
    Tensor tensor = device.allocate(dtype, {std::max<std::int64_t>(1, count)});
    device.compute_stream().launch(op::fill(tensor, 0));
    return tensor;
  };
  const std::int64_t padding = settings.divides_state ? buckets_.most_padding() : 0;
  if (!settings.divides_state) parameters_ = filled(buckets_.size(), settings.stored);
  gradients_ = filled(buckets_.size() + padding, settings.stored);
  if (!settings.divides_state) return;
  my_parameters_ = filled(buckets_.size_of_parts(), settings.stored);
  my_gradients_ = filled(buckets_.size_of_parts(), settings.stored);
  my_used_ = filled(buckets_.size_of_parts(), settings.used);
  used_ = filled(buckets_.size() + padding, settings.used);
}

void StageParameters::begin_step() {
  if (settings_.overlaps_gather) gather();
}

void StageParameters::wait_for(std::int64_t parameter) const {
  for (std::size_t i = 0; i < dates_.size(); ++i) {
    const Bucket& bucket = buckets_.buckets()[i];
    if (bucket.first <= parameter && parameter < bucket.first + bucket.count) {
      device_.compute_stream().wait(dates_[i].gathered);
    }
  }
}

void StageParameters::reduce_from(std::size_t layer) {
  for (; reduced_ < dates_.size() && buckets_.buckets()[reduced_].last_layer >= layer; ++reduced_) {
    const Bucket& bucket = buckets_.buckets()[reduced_];
    if (bucket.group->size() == 1) continue;
    Stream& stream = device_.stream(kCommunicationStream);
    stream.wait(device_.compute_stream().record());
    if (is_divided(bucket)) {
      bucket.group->reduce_scatter(my_gradients_.flat_slice(bucket.part_first, bucket.part_count),
                                   gradients(bucket.first, bucket.part_count * bucket.group->size()), stream);
    } else {
      bucket.group->all_reduce(gradients(bucket.first, bucket.count), stream);
    }
    dates_[reduced_].reduced = stream.record();
  }
}

void StageParameters::wait_until_reduced() const {
  for (const Dates& dates : dates_) device_.compute_stream().wait(dates.reduced);
}

void StageParameters::update() {
  for (std::size_t i = 0; i < dates_.size(); ++i) update(buckets_.buckets()[i], dates_[i].reduced);
  if (settings_.divides_state && !settings_.overlaps_gather) gather();
}

void StageParameters::update(const Bucket& bucket, const Event& reduced) const {
  Stream& compute = device_.compute_stream();
  compute.wait(reduced);
  const bool is_part = settings_.divides_state;
  const std::int64_t first = is_part ? bucket.part_first : bucket.first;
  const std::int64_t count = is_part ? bucket.part_count : bucket.count;
  const Tensor gradients = (is_part ? my_gradients_ : gradients_).flat_slice(first, count);
  Op op = op::scale_add((is_part ? my_parameters_ : parameters_).flat_slice(first, count), gradients,
                        -kStageLearningRate, 1);
  op.name = "sgd";
  op.category = Category::update;
  compute.launch(std::move(op));
  launch_memory(compute, optimizer_state(settings_.optimizer, count, settings_.used, settings_.stored), gradients,
                gradients, Category::update);
}

// Gathers in the order in which the next step needs parameters; those of the first layers were updated last.
void StageParameters::gather() {
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(device_.compute_stream().record());
  for (std::size_t i = dates_.size(); i-- > 0;) {
    const Bucket& bucket = buckets_.buckets()[i];
    if (!is_divided(bucket)) continue;
    bucket.group->all_gather(used_.flat_slice(bucket.first, bucket.part_count * bucket.group->size()),
                             my_used_.flat_slice(bucket.part_first, bucket.part_count), stream);
    dates_[i].gathered = stream.record();
    if (!settings_.overlaps_gather) device_.compute_stream().wait(dates_[i].gathered);
  }
}

}  // namespace tandem
