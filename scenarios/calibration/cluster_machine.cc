#include "scenarios/calibration/cluster_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::calibration {
namespace {

// Uses the line through the smallest and the largest copy. For sizes in between, buffers on the way can hide the rate
// of the network for a while.
void set_line(MeasuredPath& measured, double least_bytes) {
  const double more = static_cast<double>(measured.largest_bytes) - least_bytes;
  const double longer_s = measured.most.median - measured.least.median;
  measured.bytes_per_s =
      longer_s > 0 ? more / longer_s : static_cast<double>(measured.largest_bytes) / measured.most.median;
  measured.latency_s = std::max(0.0, measured.least.median - least_bytes / measured.bytes_per_s);
}

// Returns the latency of each port, chosen so that the latencies of two ports add up to that of their pair: by least
// squares if every pair was measured, else half of the median of a machine's own pairs.
std::vector<double> latencies_of(int workers, std::span<const MeasuredPath> paths) {
  const auto count = static_cast<std::size_t>(workers);
  std::vector<std::vector<double>> own(count);
  double total = 0;
  for (const MeasuredPath& measured : paths) {
    own[static_cast<std::size_t>(measured.path.from)].push_back(measured.latency_s);
    own[static_cast<std::size_t>(measured.path.to)].push_back(measured.latency_s);
    total += measured.latency_s;
  }
  const bool all = paths.size() == count * (count - 1);
  std::vector<double> latencies;
  for (const std::vector<double>& pairs : own) {
    if (!all || count < 3) {
      latencies.push_back(median_of(pairs) / 2);
      continue;
    }
    double sum = 0;
    for (const double latency : pairs) sum += latency;
    const auto n = static_cast<double>(count);
    latencies.push_back(std::max(0.0, (sum / 2 - total / 2 / (n - 1)) / (n - 2)));
  }
  return latencies;
}

constexpr double kBetweenOnceAndTwice = 1.5;

bool is_slow_exchange(std::span<const CollectiveSample> samples, std::span<const Port> ports) {
  double bytes = 0, time_s = 0;  // of the largest size
  for (const CollectiveSample& sample : samples) {
    if (sample.operation != "all_reduce" || sample.devices != 2 || sample.nodes != 2 || sample.bytes <= bytes) continue;
    bytes = sample.bytes, time_s = sample.time_s;
  }
  const double bytes_per_s = std::min({ports[0].send_bytes_per_s, ports[0].receive_bytes_per_s,
                                       ports[1].send_bytes_per_s, ports[1].receive_bytes_per_s});
  const double alone_s = ports[0].latency_s + ports[1].latency_s + bytes / bytes_per_s;
  return time_s > kBetweenOnceAndTwice * alone_s;
}

// The first port sends to the second one at one rate, and receives from the third at another. If it carries both, their
// sum is that of the two rates alone; if it divides its own rate, the sum is this.
bool is_slow_port(const TrafficRate& rate, std::span<const Port> ports) {
  const double out = std::min(ports[0].send_bytes_per_s, ports[1].receive_bytes_per_s);
  const double in = std::min(ports[2].send_bytes_per_s, ports[0].receive_bytes_per_s);
  const double both = out + in, divided = std::max(out, in);
  return rate.of_paths[0] + rate.of_paths[1] < (both + divided) / 2;
}

class ClusterTopology {
 public:
  explicit ClusterTopology(const MeasuredCluster& cluster) : cluster_(cluster), topology_(cluster.name) {}

  Topology build() {
    const std::size_t workers = cluster_.machines.size();
    std::vector<NodeIndex> nics;
    for (std::size_t worker = 0; worker < workers; ++worker) nics.push_back(add_machine(static_cast<int>(worker)));
    topology_.facts().exchanges_in_turn = cluster_.shared == Shared::by_pairs;
    topology_.facts().share_spread = cluster_.share_spread;
    const NodeIndex middle = topology_.add_node({.name = "fabric.switch0", .kind = NodeKind::network_switch});
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const auto& [out, in] = cables_[worker];
      if (in == nullptr) {
        topology_.add_link(nics[worker], middle, out, Direction::half_duplex);
        continue;
      }
      topology_.add_link(nics[worker], middle, out, Direction::one_way);
      topology_.add_link(middle, nics[worker], in, Direction::one_way);
    }
    return std::move(topology_);
  }

 private:
  Figure measured(double value, double spread, std::string_view what) const {
    return {value, Provenance::measured,
            fmt::format("tandem calibrate: {}; median of {} or more", what, cluster_.repetitions), cluster_.date,
            spread};
  }

  std::shared_ptr<const LinkModel> model(LinkKind kind, double bytes_per_s, double spread, double latency_s,
                                         double latency_spread, std::string id) const {
    constexpr std::string_view kWhat = "the smallest and the largest copy between machines";
    return std::make_shared<const LinkModel>(LinkModel{.kind = kind,
                                                       .bandwidth_bytes_per_s = measured(bytes_per_s, spread, kWhat),
                                                       .latency_s = measured(latency_s, latency_spread, kWhat),
                                                       .id = std::move(id)});
  }

  // A measurement between two machines includes the whole path between them, so it is counted once, in the cable.
  NodeIndex add_machine(int worker) {
    const auto place = static_cast<std::size_t>(worker);
    const Topology& machine = cluster_.machines[place];
    const Port& port = cluster_.ports[place];
    const NodeIndex measured_cpu = machine.nodes_of(0, NodeKind::cpu).front();
    const NodeIndex cpu = topology_.add_node({.name = fmt::format("w{}.cpu0", worker),
                                              .kind = NodeKind::cpu,
                                              .worker = worker,
                                              .device = machine.device(measured_cpu)});
    const auto cable = [&](double bytes_per_s, double spread, const char* way) {
      return model(LinkKind::network, bytes_per_s, spread, port.latency_s, port.latency_spread,
                   fmt::format("w{}_{}", worker, way));
    };
    if (cluster_.shared == Shared::by_ports) {
      const double bytes_per_s = std::max(port.send_bytes_per_s, port.receive_bytes_per_s);
      cables_.push_back({cable(bytes_per_s, std::max(port.send_spread, port.receive_spread), "port"), nullptr});
    } else {
      cables_.push_back({cable(port.send_bytes_per_s, port.send_spread, "sends"),
                         cable(port.receive_bytes_per_s, port.receive_spread, "receives")});
    }
    const NodeIndex nic = topology_.add_node({.name = fmt::format("w{}.nic0", worker),
                                              .kind = NodeKind::nic,
                                              .worker = worker,
                                              .port = cables_.back().first});
    topology_.add_link(cpu, nic,
                       model(LinkKind::pcie, std::max(port.send_bytes_per_s, port.receive_bytes_per_s),
                             std::max(port.send_spread, port.receive_spread), 0, 0, fmt::format("w{}_nic", worker)));
    return nic;
  }

  const MeasuredCluster& cluster_;
  Topology topology_;
  std::vector<std::pair<std::shared_ptr<const LinkModel>, std::shared_ptr<const LinkModel>>> cables_;
};

}  // namespace

std::vector<MeasuredPath> measured_paths(const std::vector<Record>& records, std::span<const Path> paths) {
  std::vector<MeasuredPath> measured;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const CopyTimes times = copies_of(records, static_cast<int>(i) + 1);
    TANDEM_CHECK(times.size() > 1, "a path without copies of two sizes");
    const auto& [least_bytes, least] = *times.begin();
    const auto& [most_bytes, most] = *times.rbegin();
    measured.push_back({.path = paths[i],
                        .latency_s = 0,
                        .bytes_per_s = 0,
                        .least = statistic_of(least),
                        .most = statistic_of(most),
                        .largest_bytes = static_cast<std::int64_t>(most_bytes)});
    set_line(measured.back(), least_bytes);
  }
  return measured;
}

std::vector<Port> ports_of(int workers, std::span<const MeasuredPath> paths) {
  std::vector<Port> ports(static_cast<std::size_t>(workers));
  for (const MeasuredPath& measured : paths) {
    Port& sender = ports[static_cast<std::size_t>(measured.path.from)];
    Port& receiver = ports[static_cast<std::size_t>(measured.path.to)];
    const double rate = measured.bytes_per_s, spread = measured.most.relative_spread;
    if (rate > sender.send_bytes_per_s) sender.send_bytes_per_s = rate, sender.send_spread = spread;
    if (rate > receiver.receive_bytes_per_s) receiver.receive_bytes_per_s = rate, receiver.receive_spread = spread;
    sender.latency_spread = std::max(sender.latency_spread, measured.least.relative_spread);
    receiver.latency_spread = std::max(receiver.latency_spread, measured.least.relative_spread);
  }
  const std::vector<double> latencies = latencies_of(workers, paths);
  for (std::size_t i = 0; i < ports.size(); ++i) ports[i].latency_s = latencies[i];
  return ports;
}

// Each path of a traffic has a sender of its own, which issues its copies.
std::vector<TrafficRate> traffic_rates(const std::vector<Record>& records, std::span<const Traffic> traffic) {
  std::vector<TrafficRate> rates;
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    TrafficRate rate{.what = traffic[i].what, .bytes_per_s = 0, .of_paths = {}};
    std::vector<double> all, deviations;
    for (const Path& path : traffic[i].paths) {
      std::vector<double> own;
      for (const auto& [bytes, times] : copies_of(records, static_cast<int>(i) + 1, path.from)) {
        for (const double time : times) own.push_back(bytes / time);
      }
      all.insert(all.end(), own.begin(), own.end());
      const double median = median_of(own);
      for (const double each : own) deviations.push_back(std::abs(each / median - 1));
      rate.of_paths.push_back(median);
    }
    rate.bytes_per_s = median_of(std::move(all));
    rate.relative_spread = median_of(std::move(deviations));
    rates.push_back(std::move(rate));
  }
  return rates;
}

Shared shared_directions(std::span<const CollectiveSample> samples, std::span<const Port> ports,
                         std::span<const TrafficRate> rates) {
  if (!is_slow_exchange(samples, ports)) return Shared::nothing;
  const auto through_one =
      std::find_if(rates.begin(), rates.end(), [](const TrafficRate& rate) { return rate.what == kThroughOne; });
  return through_one != rates.end() && is_slow_port(*through_one, ports) ? Shared::by_ports : Shared::by_pairs;
}

// A copy has the rate w / (w + v), where v is the weight of the n - 1 others together, which varies less because each
// of them ends at another time. So where w is larger by a small part, the rate is larger by (n - 1) / n of that part.
double share_spread(std::span<const TrafficRate> rates) {
  constexpr double kOfNormal = 1.4826;  // standard deviation / median absolute deviation
  constexpr double kNoise = 0.05;
  if (rates.size() < 2) return 0;
  const auto copies = static_cast<double>(rates.back().of_paths.size());
  const double spread = kOfNormal * rates.back().relative_spread * copies / (copies - 1);
  return spread > kNoise ? std::min(spread, 1.0) : 0;
}

Topology topology_of(const MeasuredCluster& cluster) {
  return ClusterTopology(cluster).build();
}

std::vector<CollectiveSample> samples_of(std::vector<Record> records, const GroupShape& shape) {
  std::erase_if(records, [](const Record& record) { return record.step != kCollectivesStep; });
  Measurement measurement{.devices = shape.workers * shape.devices};
  measurement.timeline.records = std::move(records);
  std::vector<CollectiveSample> samples = collective_samples(measurement);
  for (CollectiveSample& sample : samples) sample.nodes = shape.workers;
  return samples;
}

}  // namespace tandem::calibration
