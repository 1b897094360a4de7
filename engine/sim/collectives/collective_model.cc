#include "engine/sim/collectives/collective_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/collectives/mpi_algorithms.h"
#include "engine/sim/collectives/schedule_player.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/stream_work.h"

namespace tandem::sim {
namespace {

bool is_on_one_node(const CollectiveGroup& group) {
  const NodeIndex node = group.devices().front()->node();
  return std::all_of(group.devices().begin(), group.devices().end(),
                     [node](const SimDevice* device) { return device->node() == node; });
}

// Returns the time of one device's work in a collective through shared memory: it reduces its share (two operands read,
// one written) and copies the shares of the others.
double shared_memory_s(const DeviceCosts& costs, CollectiveKind kind, double bytes, int devices) {
  const double share = (devices - 1) * bytes / devices;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return costs.memory_s(3 * share) + costs.copy_s(share);
    case CollectiveKind::reduce_scatter:
      return costs.memory_s(3 * share);
    case CollectiveKind::all_gather:
      return costs.copy_s(share);
    case CollectiveKind::broadcast:
    case CollectiveKind::all_to_all:
      return costs.copy_s(bytes);
    case CollectiveKind::reduce:
      return costs.memory_s(3 * bytes);
    case CollectiveKind::send_receive:
      break;
  }
  TANDEM_UNREACHABLE("a collective without a model of shared memory");
}

// Returns the part of a measured time for which each device occupies its node. All devices worked at the same time, so
// they spent the rest waiting for each other.
double share_of(const CollectiveGroup& group, const SimDevice& device) {
  const auto on_node = std::count_if(group.devices().begin(), group.devices().end(),
                                     [&](const SimDevice* other) { return other->node() == device.node(); });
  return std::min(1.0, static_cast<double>(device.costs().model().cores) / static_cast<double>(on_node));
}

enum class Seconds : std::uint8_t { of_each, of_all_together };

// Lets every device work for `seconds`: on its core if the host does the copying, otherwise without occupying anything.
void occupy_each(SimRun& run, const CollectiveGroup& group, double seconds, Seconds meaning,
                 const Simulation::Then& then) {
  auto left = std::make_shared<std::size_t>(group.place_count());
  for (const SimDevice* device : group.devices()) {
    if (!run.runs(*device)) continue;
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

// Times measured on other numbers of devices say little about devices that work through the memory of one node.
std::optional<double> measured_s(SimRun& run, const CollectiveCall& call) {
  const CollectiveGroup& group = call.group();
  const CollectiveKind kind = call.spec().kind;
  if (kind == CollectiveKind::send_receive || run.measured_times().empty()) return std::nullopt;
  const CollectivePoint wanted{.devices = static_cast<int>(group.devices().size()),
                               .nodes = group.worker_count(),
                               .bytes = std::max(call.bytes(), 1.0)};
  if (wanted.devices == 1) return std::nullopt;
  const CollectiveFit* fit = run.measured_times().fit(kind);
  std::optional<CollectiveFit::Prediction> time;
  if (fit != nullptr && (fit->has(wanted.devices, wanted.nodes) || !is_on_one_node(group))) time = fit->predict(wanted);
  note_range(run.notes(), kind, wanted, time);
  return time ? std::optional(time->time_s) : std::nullopt;
}

double longest_overhead_s(const CollectiveGroup& group) {
  double longest_s = 0;
  for (const SimDevice* device : group.devices()) longest_s = std::max(longest_s, device->costs().op_overhead_s());
  return longest_s;
}

void after(SimRun& run, double seconds, Simulation::Then begin) {
  run.simulation().at(Simulation::now_s() + seconds,
                      [&run, begin = std::move(begin)] { guarded(run.scheduler(), begin); });
}

int position_of(const CollectiveGroup& group, int rank) {
  const auto& order = group.ring_order();
  return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
}

Simulation::Then copy_of(SimRun& run, const CollectiveGroup& pair, double bytes, Simulation::Then then) {
  const bool is_on_links = pair.devices()[0]->node() != pair.devices()[1]->node();
  if (run.symmetry() != nullptr && is_on_links) {
    return [&run, &pair, bytes, then = std::move(then)] { run.symmetry()->send(pair, bytes, then); };
  }
  return [&from = *pair.devices()[0], &to = *pair.devices()[1], bytes, then = std::move(then)] {
    move_bytes(from, to, bytes, true, then);
  };
}

// Returns whether every device is a processor on a host of its own.
bool is_of_hosts(const CollectiveGroup& group) {
  std::set<NodeIndex> nodes;
  for (const SimDevice* device : group.devices()) {
    if (device->id().type != DeviceType::cpu || !nodes.insert(device->node()).second) return false;
  }
  return true;
}

std::unique_ptr<CollectiveAlgorithm> algorithm_for(const CollectiveGroup& group, const CollectiveShape& shape) {
  if (is_of_hosts(group)) return choose_mpi_algorithm(shape);
  if (shape.kind == CollectiveKind::all_to_all) return std::make_unique<PairwiseExchange>();
  return std::make_unique<RingAlgorithm>();
}

// The flows of `fluid` go round a ring, so they do not show which machines send to each other at the same time.
CollectiveFidelity fidelity_among_hosts(SimRun& run) {
  const bool in_turn = run.simulation().platform().topology().facts().exchanges_in_turn;
  return in_turn ? CollectiveFidelity::message : run.fidelity();
}

Simulation::Then schedule_of(SimRun& run, CollectiveCall& call, Simulation::Then then) {
  const CollectiveGroup& group = call.group();
  const int root = position_of(group, call.spec().root);
  const int devices = static_cast<int>(group.devices().size());
  const CollectiveShape shape{call.spec().kind, devices, call.bytes(), root};
  const auto algorithm = algorithm_for(group, shape);
  if (is_of_hosts(group)) call.set_algorithm(std::string(algorithm->name()));
  std::vector<SimDevice*> order;
  for (const int rank : group.ring_order()) order.push_back(group.devices()[static_cast<std::size_t>(rank)]);
  auto player = std::make_shared<SchedulePlayer>(run, group, std::move(order), algorithm->plan(shape), std::move(then));
  const CollectiveFidelity fidelity = is_of_hosts(group) ? fidelity_among_hosts(run) : run.fidelity();
  return [player, fidelity] { player->start(fidelity); };
}

}  // namespace

void simulate(SimRun& run, CollectiveCall& call, Simulation::Then then) {
  const CollectiveGroup& group = call.group();
  const int devices = static_cast<int>(group.devices().size());
  const CollectiveKind kind = call.spec().kind;
  if (run.nccl().executes(group)) {
    call.set_algorithm(run.nccl().start(run, call, std::move(then)));
    return;
  }
  if (const auto seconds = measured_s(run, call)) {
    return occupy_each(run, group, *seconds, Seconds::of_all_together, then);
  }
  const double overhead_s = longest_overhead_s(group);
  if (kind == CollectiveKind::send_receive) {
    return after(run, overhead_s, copy_of(run, group, call.bytes(), std::move(then)));
  }
  if (devices == 1) return run.simulation().at(Simulation::now_s() + overhead_s, std::move(then));
  if (is_on_one_node(group)) {
    const double shared_s = shared_memory_s(group.devices().front()->costs(), kind, call.bytes(), devices);
    return occupy_each(run, group, overhead_s + shared_s, Seconds::of_each, then);
  }
  after(run, overhead_s, schedule_of(run, call, std::move(then)));
}

}  // namespace tandem::sim
