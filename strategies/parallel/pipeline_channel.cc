#include "strategies/parallel/pipeline_channel.h"

namespace tandem {
namespace {

Tensor first_rows(const Tensor& flat, std::int64_t rows, std::int64_t features) {
  return flat.view(0, {rows, features});
}

}  // namespace

Receiver::Receiver(Device& device, ChannelSpec spec)
    : device_(device), spec_(spec), buffers_(static_cast<std::size_t>(spec.buffers)) {
  for (Buffer& buffer : buffers_) {
    buffer.memory = device.allocate(spec.dtype, {spec.elements(spec.rows)});
    if (spec.sharers == nullptr) continue;
    buffer.part = device.allocate(spec.dtype, {spec.elements(spec.rows) / spec.sharers->size()});
  }
}

Tensor Receiver::receive(std::int64_t rows) {
  TANDEM_REQUIRE(received_ - released_ < buffers_.size(), "more micro-batches are in use than there are buffers");
  const Buffer& buffer = buffers_[received_++ % buffers_.size()];
  Tensor matrix = first_rows(buffer.memory, rows, spec_.features);
  Stream& stream = device_.stream(spec_.stream);
  stream.wait(buffer.released);
  if (const int parts = spec_.parts(rows); parts > 1) {
    const Tensor part = buffer.part.flat_slice(0, spec_.elements(rows) / parts);
    spec_.communicator->receive(part, spec_.peer, stream);
    spec_.sharers->all_gather(buffer.memory.flat_slice(0, spec_.elements(rows)), part, stream);
  } else {
    spec_.communicator->receive(matrix, spec_.peer, stream);
  }
  device_.compute_stream().wait(stream.record());
  return matrix;
}

void Receiver::release() {
  buffers_[released_++ % buffers_.size()].released = device_.compute_stream().record();
}

Sender::Sender(Device& device, ChannelSpec spec)
    : device_(device), spec_(spec), buffers_(static_cast<std::size_t>(spec.buffers)) {
  for (Buffer& buffer : buffers_) buffer.memory = device.allocate(spec.dtype, {spec.elements(spec.rows)});
}

Tensor Sender::next(std::int64_t rows) {
  const Buffer& buffer = buffers_[sent_ % buffers_.size()];
  device_.compute_stream().wait(buffer.sent);
  current_ = first_rows(buffer.memory, rows, spec_.features);
  return current_;
}

void Sender::send() {
  Stream& stream = device_.stream(spec_.stream);
  stream.wait(device_.compute_stream().record());
  const std::int64_t count = current_.element_count() / spec_.parts(current_.shape()[0]);
  const bool is_divided = count < current_.element_count();
  spec_.communicator->send(is_divided ? current_.flat_slice(spec_.part * count, count) : current_, spec_.peer, stream);
  buffers_[sent_++ % buffers_.size()].sent = stream.record();
}

}  // namespace tandem
