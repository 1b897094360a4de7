#include "strategies/reduction_to_one_device.h"

namespace tandem {

void ReductionToOneDevice::sum_in_place(const std::vector<TensorGroup>& groups) {
  for (const TensorGroup& group : groups) {
    for (std::size_t d = 1; d < group.size(); ++d) {
      order_after(0, d);
      add_from_peer(0, group[0], group[d]);
    }
    for (std::size_t d = 1; d < group.size(); ++d) copy_to_peer(d, group[d], 0, group[0]);
  }
  // The first device's tensors stay as they are until the others have read them.
  for (std::size_t d = 1; d < devices().size(); ++d) order_after(0, d);
}

}  // namespace tandem
