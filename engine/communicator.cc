#include "engine/communicator.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "engine/task.h"

namespace tandem {
namespace {

std::string text_of(const Tensor& tensor) {
  return fmt::format("{}{}", name_of(tensor.dtype()), tensor.shape().text());
}

void check_rank(int rank, const Communicator& group) {
  TANDEM_REQUIRE(rank >= 0 && rank < group.size(), fmt::format("rank {} of a group of {} devices, must be 0 to {}",
                                                               rank, group.size(), group.size() - 1));
}

void check_tensor(const Tensor& tensor, const Device& device, std::string_view name) {
  TANDEM_REQUIRE(tensor, fmt::format("{} without a tensor for {}", name, device.id().text()));
  TANDEM_REQUIRE(&tensor.device() == &device,
                 fmt::format("{} with a tensor on {} for {}", name, tensor.device().id().text(), device.id().text()));
}

// Checks that a rank's tensor is like the first rank's.
void check_alike(const Tensor& tensor, const Tensor& first, std::string_view name) {
  TANDEM_REQUIRE(tensor.dtype() == first.dtype() && tensor.element_count() == first.element_count(),
                 fmt::format("{} with tensors {} and {}, must have one element type and size", name, text_of(first),
                             text_of(tensor)));
}

// Checks that each local device has a tensor and a stream, that all tensors have one type and size, and that the root
// is within the group. `outputs` and `inputs` are the same tensors where the collective works in place, which
// all_to_all cannot. Returns `spec` with its element type and count filled in, or unchanged when the worker has no
// device in the group. Throws UsageError, in the same words on every engine.
CollectiveSpec check_operands(CollectiveSpec spec, const Communicator& group, std::span<const Tensor> outputs,
                              std::span<const Tensor> inputs, std::span<Stream* const> streams) {
  const std::string_view name = name_of(spec.kind);
  const std::span<Device* const> devices = group.local_devices();
  if (has_root(spec.kind)) check_rank(spec.root, group);
  TANDEM_REQUIRE(
      outputs.size() == devices.size() && inputs.size() == devices.size() && streams.size() == devices.size(),
      fmt::format("{} with {} outputs, {} inputs and {} streams, must be one each for {} local devices", name,
                  outputs.size(), inputs.size(), streams.size(), devices.size()));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    TANDEM_REQUIRE(streams[i] != nullptr && &streams[i]->device() == devices[i],
                   fmt::format("{} without a stream of {}", name, devices[i]->id().text()));
    check_tensor(outputs[i], *devices[i], name);
    check_tensor(inputs[i], *devices[i], name);
    check_alike(outputs[i], outputs.front(), name);
    check_alike(inputs[i], inputs.front(), name);
    TANDEM_REQUIRE(
        spec.kind != CollectiveKind::all_to_all || !outputs[i].overlaps(inputs[i]),
        fmt::format("{} of {} in place, must have an output apart from its input", name, text_of(inputs[i])));
  }
  if (devices.empty()) return spec;
  const Tensor& output = outputs.front();
  const Tensor& input = inputs.front();
  const int in = input_parts(spec.kind, group.size()), out = output_parts(spec.kind, group.size());
  TANDEM_REQUIRE(
      input.dtype() == output.dtype() && input.element_count() * out == output.element_count() * in,
      fmt::format(
          "{} of {} to {} in a group of {} devices: {}", name, text_of(input), text_of(output), group.size(),
          in == out ? "both have one type and size" : "one has as many elements for each rank as the other has"));
  TANDEM_REQUIRE(input.element_count() % in == 0,
                 fmt::format("{} of {} in parts for {} ranks", name, text_of(input), in));
  spec.dtype = input.dtype();
  spec.count = input.element_count() / in;
  return spec;
}

}  // namespace

int check_end(const Communicator& group, const Tensor& tensor, int peer_rank, const Stream& stream) {
  check_rank(peer_rank, group);
  check_tensor(tensor, stream.device(), name_of(CollectiveKind::send_receive));
  const std::span<Device* const> devices = group.local_devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == &stream.device()) return group.local_ranks()[i];
  }
  throw UsageError(fmt::format("{} on a stream of {}, which is no local device of the group",
                               name_of(CollectiveKind::send_receive), stream.device().id().text()));
}

void Communicator::all_reduce(Tensors buffers, Reduction reduction, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_reduce, .reduction = reduction}, buffers, buffers, streams);
}

void Communicator::reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams) {
  check_and_call({.kind = CollectiveKind::reduce, .reduction = reduction, .root = root_rank}, buffers, buffers,
                 streams);
}

void Communicator::broadcast(Tensors buffers, int root_rank, Streams streams) {
  check_and_call({.kind = CollectiveKind::broadcast, .root = root_rank}, buffers, buffers, streams);
}

void Communicator::all_gather(Tensors outputs, Tensors inputs, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_gather}, outputs, inputs, streams);
}

void Communicator::reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams) {
  check_and_call({.kind = CollectiveKind::reduce_scatter, .reduction = reduction}, outputs, inputs, streams);
}

void Communicator::all_to_all(Tensors outputs, Tensors inputs, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_to_all}, outputs, inputs, streams);
}

void Communicator::check_and_call(const CollectiveSpec& kind, Tensors outputs, Tensors inputs, Streams streams) {
  CollectiveSpec spec = check_operands(kind, *this, outputs, inputs, streams);
  spec.purpose = Task::current().purpose();
  call(spec, outputs, inputs, streams);
}

}  // namespace tandem
