#include "engine/sim/collectives/mpi_algorithms.h"

#include <algorithm>
#include <bit>

#include "topologies/base/error.h"

namespace tandem::sim {
namespace {

constexpr double kShortReductionBytes = 2048;       // MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE, _REDUCE_SHORT_MSG_SIZE
constexpr double kShortBroadcastBytes = 12288;      // MPIR_CVAR_BCAST_SHORT_MSG_SIZE
constexpr double kLongBroadcastBytes = 524288;      // MPIR_CVAR_BCAST_LONG_MSG_SIZE
constexpr int kLeastBroadcastDevices = 8;           // MPIR_CVAR_BCAST_MIN_PROCS
constexpr double kLongAllGatherBytes = 524288;      // MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE
constexpr double kShortAllGatherBytes = 81920;      // MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE
constexpr double kLongReduceScatterBytes = 524288;  // MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE
constexpr double kShortAllToAllBytes = 256;         // MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE, of a pair
constexpr int kLeastBruckDevices = 8;               // src/mpi/coll/alltoall

// What all devices do in one step.
struct Step {
  enum class Kind : std::uint8_t {
    fold,      // devices from `distance` on send to the one `distance` places before
    unfold,    // and back
    exchange,  // devices below `devices` with the one whose number differs in the bit `distance`
    shift,     // to the device `distance` places on
    scatter,   // down a binomial tree: from those at multiples of 2 * distance to the one `distance` places on
    gather,    // and up
  };
  Kind kind = Kind::shift;
  int distance = 0;
  double bytes = 0;
};

class Plan {
 public:
  Plan(int devices, int root) : devices_(devices), root_(root) {}

  void add(Step::Kind kind, int distance, double bytes) { steps_.push_back({kind, distance, bytes}); }

  // With `fluid`, devices that all send and receive alike load their links as a ring in which each device sends as
  // much.
  Schedule schedule() const {
    Schedule schedule;
    schedule.steps = static_cast<int>(steps_.size());
    schedule.latency_steps = schedule.steps;
    schedule.transfers_of_step = [plan = *this](int step, std::vector<Transfer>& transfers) {
      plan.expand(plan.steps_[static_cast<std::size_t>(step)], transfers);
    };
    double of_each = 0;
    for (const Step& step : steps_) {
      const bool is_tree = step.kind == Step::Kind::scatter || step.kind == Step::Kind::gather;
      if (is_tree) {
        expand(step, schedule.flows);
      } else {
        of_each += step.bytes;
      }
    }
    for (int i = 0; i < devices_ && of_each > 0; ++i) schedule.flows.push_back({i, (i + 1) % devices_, of_each});
    return schedule;
  }

 private:
  int place(int number) const { return (number + root_) % devices_; }

  void expand(const Step& step, std::vector<Transfer>& transfers) const {
    const int distance = step.distance;
    const auto send = [&](int from, int to) { transfers.push_back({place(from), place(to), step.bytes}); };
    switch (step.kind) {
      case Step::Kind::fold:
        for (int i = distance; i < devices_; ++i) send(i, i - distance);
        break;
      case Step::Kind::unfold:
        for (int i = distance; i < devices_; ++i) send(i - distance, i);
        break;
      case Step::Kind::exchange:
        for (int i = 0; i < static_cast<int>(std::bit_floor(static_cast<unsigned>(devices_))); ++i)
          send(i, i ^ distance);
        break;
      case Step::Kind::shift:
        for (int i = 0; i < devices_; ++i) send(i, (i + distance) % devices_);
        break;
      case Step::Kind::scatter:
        for (int i = 0; i + distance < devices_; i += 2 * distance) send(i, i + distance);
        break;
      case Step::Kind::gather:
        for (int i = 0; i + distance < devices_; i += 2 * distance) send(i + distance, i);
        break;
    }
  }

  int devices_;
  int root_;  // all numbers count from it
  std::vector<Step> steps_;
};

int power_below(int devices) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(devices)));
}

int power_above(int devices) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(devices)));
}

}  // namespace

Schedule RecursiveDoubling::plan(const CollectiveShape& shape) const {
  const int power = power_below(shape.devices);
  Plan plan(shape.devices, 0);
  const bool gathers = shape.kind == CollectiveKind::all_gather;
  TANDEM_CHECK(!gathers || power == shape.devices, "recursive doubling gathers from a power of two of devices");
  if (power < shape.devices) plan.add(Step::Kind::fold, power, shape.bytes);
  for (int distance = 1; distance < power; distance *= 2) {
    plan.add(Step::Kind::exchange, distance, gathers ? shape.bytes * distance / shape.devices : shape.bytes);
  }
  if (power < shape.devices) plan.add(Step::Kind::unfold, power, shape.bytes);
  return plan.schedule();
}

Schedule RecursiveHalving::plan(const CollectiveShape& shape) const {
  const int power = power_below(shape.devices);
  Plan plan(shape.devices, shape.kind == CollectiveKind::reduce ? shape.root : 0);
  if (power < shape.devices) plan.add(Step::Kind::fold, power, shape.bytes);
  for (int distance = power / 2; distance >= 1; distance /= 2) {
    plan.add(Step::Kind::exchange, distance, shape.bytes * distance / power);
  }
  if (shape.kind == CollectiveKind::reduce_scatter) {
    if (power < shape.devices) plan.add(Step::Kind::unfold, power, shape.bytes / shape.devices);
    return plan.schedule();
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const bool gathers = shape.kind == CollectiveKind::reduce;
    plan.add(gathers ? Step::Kind::gather : Step::Kind::exchange, distance, shape.bytes * distance / power);
  }
  if (power < shape.devices && shape.kind == CollectiveKind::all_reduce) {
    plan.add(Step::Kind::unfold, power, shape.bytes);
  }
  return plan.schedule();
}

Schedule BinomialTree::plan(const CollectiveShape& shape) const {
  Plan plan(shape.devices, shape.root);
  if (shape.kind == CollectiveKind::broadcast) {
    for (int distance = power_above(shape.devices) / 2; distance >= 1; distance /= 2) {
      plan.add(Step::Kind::scatter, distance, shape.bytes);
    }
  } else {
    for (int distance = 1; distance < shape.devices; distance *= 2) {
      plan.add(Step::Kind::gather, distance, shape.bytes);
    }
  }
  return plan.schedule();
}

Schedule ScatterAllGather::plan(const CollectiveShape& shape) const {
  Plan plan(shape.devices, shape.root);
  const double part = shape.bytes / shape.devices;
  for (int distance = power_above(shape.devices) / 2; distance >= 1; distance /= 2) {
    plan.add(Step::Kind::scatter, distance, part * std::min(distance, shape.devices - distance));
  }
  const bool doubles = shape.bytes < kLongBroadcastBytes && power_below(shape.devices) == shape.devices;
  if (doubles) {
    for (int distance = 1; distance < shape.devices; distance *= 2) {
      plan.add(Step::Kind::exchange, distance, part * distance);
    }
  } else {
    for (int step = 1; step < shape.devices; ++step) plan.add(Step::Kind::shift, 1, part);
  }
  return plan.schedule();
}

Schedule BruckAlgorithm::plan(const CollectiveShape& shape) const {
  Plan plan(shape.devices, 0);
  const double part = shape.bytes / shape.devices;
  for (int distance = 1; distance < shape.devices; distance *= 2) {
    const int gathered = std::min(distance, shape.devices - distance);
    int sent = 0;  // in an all-to-all: the parts whose number has this bit
    for (int i = 0; i < shape.devices; ++i) sent += (i & distance) != 0 ? 1 : 0;
    plan.add(Step::Kind::shift, distance, part * (shape.kind == CollectiveKind::all_gather ? gathered : sent));
  }
  return plan.schedule();
}

Schedule PairwiseReduceScatter::plan(const CollectiveShape& shape) const {
  Plan plan(shape.devices, 0);
  for (int distance = 1; distance < shape.devices; ++distance) {
    plan.add(Step::Kind::shift, distance, shape.bytes / shape.devices);
  }
  return plan.schedule();
}

std::unique_ptr<CollectiveAlgorithm> choose_mpi_algorithm(const CollectiveShape& shape) {
  const bool is_power = power_below(shape.devices) == shape.devices;
  switch (shape.kind) {
    case CollectiveKind::all_reduce:
      if (shape.bytes <= kShortReductionBytes) return std::make_unique<RecursiveDoubling>();
      return std::make_unique<RecursiveHalving>("Rabenseifner");
    case CollectiveKind::reduce:
      if (shape.bytes <= kShortReductionBytes) return std::make_unique<BinomialTree>();
      return std::make_unique<RecursiveHalving>("Rabenseifner");
    case CollectiveKind::broadcast:
      if (shape.bytes < kShortBroadcastBytes || shape.devices < kLeastBroadcastDevices) {
        return std::make_unique<BinomialTree>();
      }
      return std::make_unique<ScatterAllGather>();
    case CollectiveKind::all_gather:
      if (is_power && shape.bytes < kLongAllGatherBytes) return std::make_unique<RecursiveDoubling>();
      if (!is_power && shape.bytes < kShortAllGatherBytes) return std::make_unique<BruckAlgorithm>();
      return std::make_unique<RingAlgorithm>();
    case CollectiveKind::reduce_scatter:
      if (shape.bytes < kLongReduceScatterBytes) return std::make_unique<RecursiveHalving>("recursive halving");
      return std::make_unique<PairwiseReduceScatter>();
    case CollectiveKind::all_to_all:
      if (shape.bytes / shape.devices <= kShortAllToAllBytes && shape.devices >= kLeastBruckDevices) {
        return std::make_unique<BruckAlgorithm>();
      }
      return std::make_unique<PairwiseExchange>();
    case CollectiveKind::send_receive:
      break;
  }
  TANDEM_UNREACHABLE("a collective without an algorithm");
}

}  // namespace tandem::sim
