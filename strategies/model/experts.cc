#include "strategies/model/experts.h"

#include <algorithm>
#include <numeric>

#include "topologies/base/error.h"

namespace tandem {

double fullest_device(const ExpertSettings& settings, std::int64_t experts, int devices) {
  if (settings.capacity > 0) return settings.capacity;
  const auto all = static_cast<std::int64_t>(settings.popularity.size());
  if (devices == 1 || all != experts) return 1;
  const std::int64_t of_one = experts / devices;
  const auto rows_of = [&](std::int64_t device) {
    const auto first = settings.popularity.begin() + device * of_one;
    return std::accumulate(first, first + of_one, 0.0);
  };
  double most = 0;
  for (std::int64_t device = 0; device < devices; ++device) most = std::max(most, rows_of(device));
  return most * devices / std::accumulate(settings.popularity.begin(), settings.popularity.end(), 0.0);
}

double parts_used(std::int64_t experts, std::int64_t used, std::int64_t parts) {
  double misses = 1;  // the probability that a row uses no expert of a part
  const std::int64_t others = experts - experts / parts;
  for (std::int64_t i = 0; i < std::min(used, experts); ++i) {
    misses *= static_cast<double>(std::max<std::int64_t>(0, others - i)) / static_cast<double>(experts - i);
  }
  return static_cast<double>(parts) * (1 - misses);
}

double passes_of(const Layer::Routing& routing, Dispatch dispatch, int devices) {
  constexpr double kOneOrder = 2;  // a kernel that reads and writes all copies
  if (devices == 1) return kOneOrder;
  switch (dispatch) {
    case Dispatch::all_to_all:
      return routing.experts > devices ? 2 * kOneOrder : kOneOrder;
    case Dispatch::deepep:
      return 1 + parts_used(routing.experts, routing.used, devices) / static_cast<double>(routing.used);
    case Dispatch::hybridep:
      return 0;
  }
  TANDEM_UNREACHABLE("a way to dispatch rows");
}

}  // namespace tandem
