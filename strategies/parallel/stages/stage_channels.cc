#include "strategies/parallel/stages/stage_channels.h"

#include "strategies/parallel/stages/streams.h"

namespace tandem {

void open_channels(StageChannels& channels, const MeshMember& member, const ParallelOptions& options, int chunk,
                   const StageMatrices& matrices) {
  const MeshGroups& groups = member.groups;
  const int stage = options.stage_of(member.place.pipeline, chunk);
  const auto place_of = [&](int neighbour) { return options.place_of(neighbour, chunk); };
  const auto backward_rank = [&](int place) {
    return groups.gradients == groups.activations ? place : options.pipeline - 1 - place;
  };
  ChannelSpec spec{.rows = matrices.rows, .dtype = matrices.dtype, .part = member.place.tensor};
  const auto sharers = [&](bool whole) {
    return whole && options.scatter_gather && options.tensor > 1 ? groups.tensor : nullptr;
  };
  const int streams = options.ends_meet() && chunk > 0 ? kSecondStageStreams : 0;
  const auto along = [&](Communicator* communicator, int peer, int stream, int buffers) {
    spec.communicator = communicator;
    spec.peer = peer;
    spec.stream = streams + stream;
    spec.buffers = buffers;
    return spec;
  };
  const auto is_elsewhere = [&](int neighbour) {
    return neighbour >= 0 && neighbour < options.stages() && place_of(neighbour) != member.place.pipeline;
  };
  Device& device = *member.device;
  if (is_elsewhere(stage - 1)) {
    const int peer = place_of(stage - 1);
    spec.features = matrices.inputs;
    spec.sharers = sharers(matrices.whole_inputs);
    channels.input.emplace(device, along(groups.activations, peer, kReceiveInputStream, matrices.live + 1));
    channels.input_gradient.emplace(device, along(groups.gradients, backward_rank(peer), kSendGradientStream, 2));
  }
  if (!is_elsewhere(stage + 1)) return;
  const int peer = place_of(stage + 1);
  spec.features = matrices.outputs;
  spec.sharers = sharers(matrices.whole_outputs);
  channels.output.emplace(device, along(groups.activations, peer, kSendOutputStream, 2));
  channels.gradient.emplace(device, along(groups.gradients, backward_rank(peer), kReceiveGradientStream, 2));
}

}  // namespace tandem
