#include "strategies/model/offload.h"

namespace tandem {

std::vector<OffloadSegment> offload_segments(std::span<const Layer> layers, int blocks) {
  std::vector<OffloadSegment> segments;
  int blocks_before = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool begins = i == 0 || layers[i].block != layers[i - 1].block;
    if (begins) {
      segments.push_back({.first = i, .end = i, .is_offloaded = layers[i].block && blocks_before < blocks});
      if (layers[i].block) ++blocks_before;
    }
    segments.back().end = i + 1;
  }
  return segments;
}

}  // namespace tandem
