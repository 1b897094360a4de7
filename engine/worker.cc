#include "engine/worker.h"

#include <fmt/format.h>

namespace tandem {

std::shared_ptr<void> Worker::kept(std::string_view name, const SharedFactory& make) {
  return shared(fmt::format("{} of worker {}", name, index()), make);
}

std::shared_ptr<SharedTensor> Worker::shared_tensor(std::string_view name, const TensorFactory& make) {
  return std::static_pointer_cast<SharedTensor>(
      shared(fmt::format("tensor {}", name), [&] { return make_shared_tensor(make(), make_monitor()); }));
}

}  // namespace tandem
