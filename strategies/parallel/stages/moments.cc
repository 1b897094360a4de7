#include "strategies/parallel/stages/moments.h"

#include <algorithm>

namespace tandem {

std::span<const Tensor> Moments::of(std::size_t piece, const Tensor& parameters, int count) {
  pieces_.resize(std::max(pieces_.size(), piece + 1));
  std::vector<Tensor>& mine = pieces_[piece];
  while (static_cast<int>(mine.size()) < count) {
    mine.push_back(parameters.device().allocate(parameters.dtype(), parameters.shape()));
    parameters.device().compute_stream().launch(op::fill(mine.back(), 0));
  }
  return mine;
}

}  // namespace tandem
