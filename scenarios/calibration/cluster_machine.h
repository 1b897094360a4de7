// Makes the topology of a measured cluster: its machines, a network port for each, and one switch between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/calibration/cluster_program.h"
#include "scenarios/calibration/figures.h"
#include "topologies/topology.h"

namespace tandem::calibration {

struct MeasuredPath {
  Path path;
  double latency_s = 0, bytes_per_s = 0;
  Statistic least, most;           // times of the smallest and the largest copy
  std::int64_t largest_bytes = 0;  // the size of the largest copy
};
// Finds the copies of each path by the steps of `records`, see measure_paths().
std::vector<MeasuredPath> measured_paths(const std::vector<Record>& records, std::span<const Path> paths);

// The rates of a machine's port in each direction. A pair of machines is as fast as the slower of the two ports that it
// uses, and its latency is the sum of theirs.
struct Port {
  double send_bytes_per_s = 0, receive_bytes_per_s = 0;
  double latency_s = 0;
  double send_spread = 0, receive_spread = 0, latency_spread = 0;
};
std::vector<Port> ports_of(int workers, std::span<const MeasuredPath> paths);

// The rate that each copy of a traffic achieved: the median over all of them, and over those of each path.
struct TrafficRate {
  std::string what;
  double bytes_per_s = 0;
  std::vector<double> of_paths;
  double relative_spread = 0;  // of the copies of a path: median absolute deviation / median
};
std::vector<TrafficRate> traffic_rates(const std::vector<Record>& records, std::span<const Traffic> traffic);

// What divides the rate that a copy has alone when another goes the other way: nothing; two machines that send to each
// other; or every port, whichever machines it sends to and receives from.
enum class Shared : std::uint8_t { nothing, by_pairs, by_ports };

// The largest all_reduce of the first two workers shows whether anything is shared: each sends all of it to the other
// one, so that it takes as long as a copy, or twice as long. Two copies would show it only if they happened to begin
// together. `rates` tells pairs from ports; without a third worker it makes no difference.
Shared shared_directions(std::span<const CollectiveSample> samples, std::span<const Port> ports,
                         std::span<const TrafficRate> rates);

// Returns Topology::share_spread(), from copies of all workers to one; 0 if there are fewer than three workers, or
// where the spread may be noise.
double share_spread(std::span<const TrafficRate> rates);

struct MeasuredCluster {
  std::string name;
  std::string date;                // ISO
  int repetitions = 0;             // of each measurement, at least
  std::vector<Topology> machines;  // by worker, each of one worker with a CPU
  std::vector<Port> ports;         // by worker
  Shared shared = Shared::nothing;
  double share_spread = 0;
};
// Makes the topology, without collectives.
Topology topology_of(const MeasuredCluster& cluster);

// Returns the measured collectives of groups of `shape`, from measure_collectives_between().
std::vector<CollectiveSample> samples_of(std::vector<Record> records, const GroupShape& shape);

}  // namespace tandem::calibration
