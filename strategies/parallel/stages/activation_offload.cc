#include "strategies/parallel/stages/activation_offload.h"

#include <algorithm>

#include "strategies/parallel/stages/streams.h"

namespace tandem {
namespace {

constexpr DType kCopied = DType::bf16;  // what is copied has even numbers of bytes

std::int64_t copied_elements(std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(size_of(kCopied));
  return std::max<std::int64_t>(1, (bytes + size - 1) / size);
}

}  // namespace

ActivationOffload::ActivationOffload(Device& device, Device& host, std::vector<OffloadSegment> segments,
                                     const std::vector<std::int64_t>& kept, std::int64_t examples, int live)
    : device_(device), live_(live) {
  std::int64_t largest = 0;
  for (const OffloadSegment& layers : segments) {
    Segment& segment = segments_.emplace_back();
    segment.layers = layers;
    if (!layers.is_offloaded) continue;
    segment.bytes = kept.at(layers.end - 1) - (layers.first > 0 ? kept.at(layers.first - 1) : 0);
    const std::int64_t elements = copied_elements(examples * segment.bytes);
    for (int i = 0; i < live; ++i) segment.on_host.push_back(host.allocate(kCopied, {elements}));
    largest = std::max(largest, elements);
  }
  if (largest > 0) on_device_ = device.allocate(kCopied, {largest});
}

Tensor ActivationOffload::part(const Tensor& all, const Segment& segment, const Pass& pass) const {
  return all.flat_slice(0, copied_elements(pass.examples * segment.bytes));
}

void ActivationOffload::copy_out(Segment& segment, const Pass& pass) {
  Stream& stream = device_.stream(kToHostStream);
  stream.wait(device_.compute_stream().record());
  const Tensor& on_host = segment.on_host[static_cast<std::size_t>(pass.index % live_)];
  stream.copy(part(on_host, segment, pass), part(on_device_, segment, pass), Category::input);
  segment.gone[pass.index] = stream.record();
}

void ActivationOffload::copy_back(Segment& segment, const Pass& pass) {
  Stream& stream = device_.stream(kFromHostStream);
  stream.wait(device_.compute_stream().record());
  stream.wait(segment.gone[pass.index]);
  const Tensor& on_host = segment.on_host[static_cast<std::size_t>(pass.index % live_)];
  stream.copy(part(on_device_, segment, pass), part(on_host, segment, pass), Category::input);
  segment.back[pass.index] = stream.record();
  segment.gone.erase(pass.index);
}

void ActivationOffload::wait_until_gone(const Segment& segment, const Pass& pass) {
  if (segment.layers.is_offloaded) device_.compute_stream().wait(segment.gone.at(pass.index));
}

void ActivationOffload::after_forward(std::size_t layer, const Pass& pass) {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].layers.end != layer + 1) continue;
    if (segments_[i].layers.is_offloaded) copy_out(segments_[i], pass);
    if (i > 0) wait_until_gone(segments_[i - 1], pass);
    if (i + 1 == segments_.size()) wait_until_gone(segments_[i], pass);
  }
}

void ActivationOffload::before_backward(std::size_t layer, const Pass& pass) {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    if (segment.layers.end != layer + 1) continue;
    if (i + 1 == segments_.size() && segment.layers.is_offloaded) copy_back(segment, pass);
    if (i > 0 && segments_[i - 1].layers.is_offloaded) copy_back(segments_[i - 1], pass);
    if (!segment.layers.is_offloaded) continue;
    device_.compute_stream().wait(segment.back.at(pass.index));
    segment.back.erase(pass.index);
  }
}

}  // namespace tandem
