// What devices keep in the memory of their host.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "strategies/model/model.h"

namespace tandem {

struct Offload {
  // So many blocks (Layer::block) of each stage, from the first on, copy what they keep for their backward pass to the
  // host, and copy it back before that pass.
  int blocks = 0;
  // The share of the parameters whose optimizer state is on the host, which updates them.
  double optimizer = 0;

  bool any() const { return blocks > 0 || optimizer > 0; }
};

// Consecutive layers of a stage that are copied together, or that stay.
//
// What an offloaded segment keeps goes to the host once its forward pass is done. The end of the next segment's forward
// pass waits for that copy or, if there is no next one, the end of the pass. It comes back while the backward pass of
// the next segment runs or, if there is none, as the pass begins. So a device holds what two segments keep.
struct OffloadSegment {
  std::size_t first = 0, end = 0;
  bool is_offloaded = false;
};
// Returns the blocks, and the runs of layers between them. Covers all layers.
std::vector<OffloadSegment> offload_segments(std::span<const Layer> layers, int blocks);

}  // namespace tandem
