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

namespace {

// The probability that a row, which uses `used` of `experts`, uses none of a part with so many of them.
double missed(std::int64_t experts, std::int64_t used, std::int64_t of_part) {
  double misses = 1;
  const std::int64_t others = experts - of_part;
  for (std::int64_t i = 0; i < std::min(used, experts); ++i) {
    misses *= static_cast<double>(std::max<std::int64_t>(0, others - i)) / static_cast<double>(experts - i);
  }
  return misses;
}

// Returns for each number of experts how probable it is that so many of those in the range [begin, end) are in the
// chosen groups.
std::vector<double> in_chosen_groups(std::int64_t begin, std::int64_t end, std::int64_t of_group,
                                     const RoutingGroups& groups) {
  const auto width = static_cast<std::size_t>(end - begin + 1);
  // [chosen][experts]: the probability after some groups, each of which is chosen with its share of what is left.
  std::vector<std::vector<double>> after(static_cast<std::size_t>(groups.used) + 1, std::vector<double>(width));
  after[0][0] = 1;
  for (std::int64_t group = 0; group < groups.count; ++group) {
    const std::int64_t first = std::max(begin, group * of_group), last = std::min(end, (group + 1) * of_group);
    const auto common = static_cast<std::size_t>(std::max<std::int64_t>(0, last - first));
    const auto left = static_cast<double>(groups.count - group);
    for (std::size_t chosen = after.size(); chosen-- > 0;) {
      const double is_chosen = (static_cast<double>(groups.used) - static_cast<double>(chosen)) / left;
      for (std::size_t experts = width; experts-- > 0;) {
        const double probability = after[chosen][experts];
        if (probability == 0) continue;
        after[chosen][experts] = probability * (1 - is_chosen);
        if (is_chosen > 0) after[chosen + 1][experts + common] += probability * is_chosen;
      }
    }
  }
  return after.back();
}

}  // namespace

double parts_used(std::int64_t experts, std::int64_t used, std::int64_t parts, const RoutingGroups& groups) {
  if (groups.count == 0 && experts % parts == 0) {
    return static_cast<double>(parts) * (1 - missed(experts, used, experts / parts));
  }
  if (groups.count == 0) return parts_used(experts, used, parts, {.count = 1, .used = 1});
  const std::int64_t of_group = experts / groups.count;
  double sum = 0;
  std::vector<double> found;
  double of_found = 0;
  std::int64_t found_width = 0;  // parts that are inside a group and as wide have the same probabilities
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * experts / parts, end = (part + 1) * experts / parts;
    const bool is_in_one = end > begin && begin / of_group == (end - 1) / of_group;
    if (!is_in_one || end - begin != found_width) {
      found = in_chosen_groups(begin, end, of_group, groups);
      found_width = is_in_one ? end - begin : 0;
      of_found = 0;
      for (std::size_t of_part = 0; of_part < found.size(); ++of_part) {
        of_found += found[of_part] * (1 - missed(groups.used * of_group, used, static_cast<std::int64_t>(of_part)));
      }
    }
    sum += of_found;
  }
  return sum;
}

double dispatched_bytes(const ExpertSettings& settings, double element_bytes) {
  constexpr double kScaleBytes = 4, kElementsOfScale = 128;
  return settings.dispatches_bytes ? 1 + kScaleBytes / kElementsOfScale : element_bytes;
}

double passes_of(const Layer::Routing& routing, const ExpertSettings& settings, int devices) {
  constexpr double kOneOrder = 2;  // a kernel that reads and writes all copies
  if (devices == 1) return kOneOrder;
  switch (settings.dispatch) {
    case Dispatch::all_to_all:
      return routing.experts > devices ? 2 * kOneOrder : kOneOrder;
    case Dispatch::deepep:
      return 1 +
             parts_used(routing.experts, routing.used, devices, settings.groups) / static_cast<double>(routing.used);
    case Dispatch::hybridep:
      return 0;
  }
  TANDEM_UNREACHABLE("a way to dispatch rows");
}

}  // namespace tandem
