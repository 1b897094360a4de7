#include "engine/sim/symmetry/faulty_parts.h"

#include <algorithm>
#include <map>

namespace tandem::sim {

FaultyLinks faulty_links(const EngineOptions& options) {
  FaultyLinks links;
  if (!options.faults) return links;
  std::map<LinkIndex, std::vector<std::size_t>> entries;
  for (std::size_t i = 0; i < options.faults->slow_links.size(); ++i) {
    for (const LinkIndex link : options.faults->slow_links[i].links) entries[link].push_back(i);
  }
  std::map<std::vector<std::size_t>, int> numbers;
  for (const auto& [link, slowed_by] : entries) {
    const auto number = numbers.try_emplace(slowed_by, static_cast<int>(numbers.size()) + 1).first;
    double share = 1, least_share = 1;
    for (const std::size_t i : slowed_by) {
      share /= options.faults->slow_links[i].factor;
      least_share = std::min({least_share, share, 1 / options.faults->slow_links[i].factor});
    }
    links[link] = {.least_share = least_share, .number = number->second};
  }
  return links;
}

std::vector<int> faulty_workers(const EngineOptions& options) {
  std::vector<int> numbers(options.workers.size());
  if (!options.faults) return numbers;
  const auto touch = [&](std::size_t worker) { numbers[worker] = static_cast<int>(worker) + 1; };
  for (const SlowDevices& slow : options.faults->slow_devices) touch(static_cast<std::size_t>(slow.worker));
  for (const LostWorker& lost : options.faults->lost_workers) touch(static_cast<std::size_t>(lost.worker));
  for (const SlowLinks& slow : options.faults->slow_links) {
    for (const LinkIndex index : slow.links) {
      const Link link = options.topology->link(index);
      for (std::size_t worker = 0; worker < numbers.size(); ++worker) {
        const int machine = options.workers[worker].topology_worker;
        if (options.topology->worker(link.from) == machine || options.topology->worker(link.to) == machine) {
          touch(worker);
        }
      }
    }
  }
  return numbers;
}

bool devices_differ_by_faults(const EngineOptions& options) {
  if (!options.faults) return false;
  return !options.faults->slow_links.empty() ||
         std::ranges::any_of(options.faults->slow_devices,
                             [](const SlowDevices& slow) { return slow.device.has_value(); });
}

}  // namespace tandem::sim
