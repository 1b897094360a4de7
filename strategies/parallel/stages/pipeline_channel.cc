#include "strategies/parallel/stages/pipeline_channel.h"

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
    : device_(device), spec_(spec), buffers_(static_cast<std::size_t>(spec.buffers)) {}

void Sender::wait_for_room() {
  device_.compute_stream().wait(buffers_[sent_ % buffers_.size()].sent);
}

void Sender::send(const Tensor& matrix, std::int64_t rows) {
  Buffer& buffer = buffers_[sent_++ % buffers_.size()];
  if (!matrix && !buffer.memory) buffer.memory = device_.allocate(spec_.dtype, {spec_.elements(spec_.rows)});
  const Tensor& whole = matrix ? matrix : buffer.memory;
  Stream& stream = device_.stream(spec_.stream);
  stream.wait(device_.compute_stream().record());
  const std::int64_t elements = spec_.elements(rows), part = elements / spec_.parts(rows);
  const bool is_divided = part < elements;
  spec_.communicator->send(whole.flat_slice(is_divided ? spec_.part * part : 0, part), spec_.peer, stream);
  buffer.sent = stream.record();
}

}  // namespace tandem
