#include "strategies/parallel/stages/stage_joint.h"

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {

void HandedMatrices::put(const Tensor& matrix) {
  Matrix& handed = put_.emplace_back();
  const std::int64_t elements = matrix.element_count();
  const auto fits = [elements](const Tensor& memory) { return memory.element_count() >= elements; };
  if (const auto found = std::ranges::find_if(free_, fits); found != free_.end()) {
    handed.memory = *found;
    free_.erase(found);
  } else {
    handed.memory = device_.allocate(matrix.dtype(), {elements});
  }
  handed.value = handed.memory.view(0, matrix.shape());
  device_.compute_stream().copy(handed.value, matrix, Category::other);
}

Tensor HandedMatrices::take() {
  TANDEM_CHECK(!put_.empty(), "a pass of a stage before that of the stage before it");
  taken_.push_back(std::move(put_.front()));
  put_.pop_front();
  return taken_.back().value;
}

void HandedMatrices::release() {
  free_.push_back(taken_.front().memory);
  taken_.pop_front();
}

}  // namespace tandem
