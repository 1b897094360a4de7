#include "strategies/parallel/stages/stage_channels.h"

#include "strategies/parallel/stages/streams.h"

namespace tandem {

void open_channels(StageChannels& channels, const MeshMember& member, const ParallelOptions& options, int stage,
                   const StageMatrices& matrices) {
  const MeshGroups& groups = member.groups;
  const auto forward_rank = [&](int of_stage) { return of_stage % options.pipeline; };
  const auto backward_rank = [&](int of_stage) {
    return groups.gradients == groups.activations ? forward_rank(of_stage)
                                                  : options.pipeline - 1 - forward_rank(of_stage);
  };
  ChannelSpec spec{.rows = matrices.rows, .dtype = matrices.dtype, .part = member.place.tensor};
  const auto sharers = [&](bool whole) {
    return whole && options.scatter_gather && options.tensor > 1 ? groups.tensor : nullptr;
  };
  const auto along = [&](Communicator* communicator, int peer, int stream, int buffers) {
    spec.communicator = communicator;
    spec.peer = peer;
    spec.stream = stream;
    spec.buffers = buffers;
    return spec;
  };
  Device& device = *member.device;
  if (stage > 0) {
    spec.features = matrices.inputs;
    spec.sharers = sharers(matrices.whole_inputs);
    channels.input.emplace(device,
                           along(groups.activations, forward_rank(stage - 1), kReceiveInputStream, matrices.live + 1));
    channels.input_gradient.emplace(device, along(groups.gradients, backward_rank(stage - 1), kSendGradientStream, 2));
  }
  if (stage + 1 == options.stages()) return;
  spec.features = matrices.outputs;
  spec.sharers = sharers(matrices.whole_outputs);
  channels.output.emplace(device, along(groups.activations, forward_rank(stage + 1), kSendOutputStream, 2));
  channels.gradient.emplace(device, along(groups.gradients, backward_rank(stage + 1), kReceiveGradientStream, 2));
}

}  // namespace tandem
