#include "strategies/input/dataset_node.h"

namespace tandem {

std::optional<Element> DatasetNode::sample() const {
  if (!inputs_.empty()) return input().sample();
  return iterate(std::make_shared<IterationMemory>())->next();
}

Element DatasetNode::at(std::int64_t /*index*/) const {
  TANDEM_CHECK(false, "a dataset without random access");
}

}  // namespace tandem
