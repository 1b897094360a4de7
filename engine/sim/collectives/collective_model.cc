#include "engine/sim/collectives/collective_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/sim/collectives/schedule_player.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {
namespace {

bool is_on_one_node(const CollectiveGroup& group) {
  const NodeIndex node = group.devices().front()->node();
  return std::all_of(group.devices().begin(), group.devices().end(),
                     [node](const SimDevice* device) { return device->node() == node; });
}

bool is_in_one_worker(const CollectiveGroup& group) {
  const int worker = group.devices().front()->worker();
  return std::all_of(group.devices().begin(), group.devices().end(),
                     [worker](const SimDevice* device) { return device->worker() == worker; });
}

// The work of one device in a collective through memory that all of them share: it copies what others have and
// reduces (two operands read, one written) what it is to own.
double shared_memory_s(const DeviceCosts& costs, const CollectiveRequest& request, int devices) {
  const double share = (devices - 1) * request.bytes / devices;
  switch (request.operation) {
    case Operation::all_reduce:
      return costs.memory_s(3 * share) + costs.copy_s(share);
    case Operation::reduce_scatter:
      return costs.memory_s(3 * share);
    case Operation::all_gather:
      return costs.copy_s(share);
    case Operation::broadcast:
      return costs.copy_s(request.bytes);
    case Operation::reduce:
      return costs.memory_s(3 * request.bytes);
  }
  return 0;
}

// Of a measured time what each device needs of its node: all worked at once, so it holds what they waited for each
// other.
double share_of(const CollectiveGroup& group, const SimDevice& device) {
  const auto on_node = std::count_if(group.devices().begin(), group.devices().end(),
                                     [&](const SimDevice* other) { return other->node() == device.node(); });
  return std::min(1.0, static_cast<double>(device.costs().model().cores) / static_cast<double>(on_node));
}

enum class Seconds : std::uint8_t { of_each, of_all_at_once };

// `seconds` of every device: of its core where work of the host does the copying, else of nothing.
void occupy_each(SimRun& run, const CollectiveGroup& group, double seconds, Seconds meaning,
                 const Simulation::Then& then) {
  auto left = std::make_shared<std::size_t>(group.devices().size());
  for (const SimDevice* device : group.devices()) {
    const auto one_done = [left, then] {
      if (--*left == 0) then();
    };
    if (device->costs().copies_occupy()) {
      const double share = meaning == Seconds::of_each ? 1 : share_of(group, *device);
      run.simulation().execute(device->node(), share * seconds, one_done);
    } else {
      run.simulation().at(Simulation::now_s() + seconds, one_done);
    }
  }
}

std::optional<double> measured_s(SimRun& run, const CollectiveGroup& group, const CollectiveRequest& request) {
  if (!is_in_one_worker(group)) return std::nullopt;
  const int devices = static_cast<int>(group.devices().size());
  const auto& samples = run.topology().collectives();
  const auto time = sampled_time(samples, name_of(request.operation), devices, request.bytes);
  if (!time) {
    if (!samples.empty()) {
      run.notes().add(
          fmt::format("extrapolated: {} was not measured on {} devices", name_of(request.operation), devices));
    }
    return std::nullopt;
  }
  if (time->is_extrapolated) {
    run.notes().add(
        fmt::format("extrapolated: {} on {} devices outside the measured sizes", name_of(request.operation), devices));
  }
  return time->seconds;
}

int position_of(const CollectiveGroup& group, int rank) {
  const auto& order = group.ring_order();
  return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
}

}  // namespace

std::optional<SampledTime> sampled_time(std::span<const CollectiveSample> samples, std::string_view operation,
                                        int devices, double bytes) {
  std::vector<const CollectiveSample*> fitting;
  for (const CollectiveSample& sample : samples) {
    if (sample.operation == operation && sample.devices == devices) fitting.push_back(&sample);
  }
  if (fitting.empty()) return std::nullopt;
  std::sort(fitting.begin(), fitting.end(), [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  const CollectiveSample& least = *fitting.front();
  const CollectiveSample& most = *fitting.back();
  if (bytes <= least.bytes) return SampledTime{least.time_s, bytes < least.bytes};
  if (bytes >= most.bytes) return SampledTime{most.time_s * bytes / most.bytes, bytes > most.bytes};
  const auto above = std::find_if(fitting.begin(), fitting.end(), [bytes](const auto* s) { return s->bytes > bytes; });
  const CollectiveSample& low = **std::prev(above);
  const CollectiveSample& high = **above;
  const double low_at = std::log(std::max(low.bytes, 1.0));
  const double fraction = (std::log(bytes) - low_at) / (std::log(high.bytes) - low_at);
  return SampledTime{low.time_s * std::pow(high.time_s / low.time_s, std::clamp(fraction, 0.0, 1.0)), false};
}

void simulate(SimRun& run, const CollectiveGroup& group, const CollectiveCall& call, Simulation::Then then) {
  const CollectiveRequest& request = call.request();
  const int devices = static_cast<int>(group.devices().size());
  if (const auto seconds = devices > 1 ? measured_s(run, group, request) : std::nullopt) {
    return occupy_each(run, group, *seconds, Seconds::of_all_at_once, then);
  }
  double overhead_s = 0;
  for (const SimDevice* device : group.devices()) overhead_s = std::max(overhead_s, device->costs().op_overhead_s());
  if (devices == 1) return run.simulation().at(Simulation::now_s() + overhead_s, std::move(then));
  if (is_on_one_node(group)) {
    const DeviceCosts& costs = group.devices().front()->costs();
    const double seconds = overhead_s + shared_memory_s(costs, request, devices);
    return occupy_each(run, group, seconds, Seconds::of_each, then);
  }
  const int root = position_of(group, request.root_rank);
  auto schedule = RingAlgorithm().plan({request.operation, devices, request.bytes, root});
  std::vector<SimDevice*> order;
  for (const int rank : group.ring_order()) order.push_back(group.devices()[static_cast<std::size_t>(rank)]);
  auto player = std::make_shared<SchedulePlayer>(run, std::move(order), std::move(schedule), std::move(then));
  run.simulation().at(Simulation::now_s() + overhead_s,
                      [&run, player] { guarded(run.scheduler(), [&] { player->start(run.fidelity()); }); });
}

}  // namespace tandem::sim
