// Fits a device's figures to a throughput that one such device is known to achieve: "this workload, 2,375 examples/s".
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario.h"
#include "topologies/topology.h"

namespace tandem {

// A measured training throughput of one device.
struct MeasuredThroughput {
  WorkloadSettings workload;
  double per_second = 0;  // units of the workload, such as examples
  std::string source;     // for the fitted figures: "one-a100.yaml"
  std::string file{};     // its path, for messages; empty: the source
  FilePlace place = kBeginning;
};

// Reads a file with the key `throughput` (docs/calibration.md). Throws InputError with every problem.
std::vector<MeasuredThroughput> read_throughputs(const std::filesystem::path& path);

struct DeviceFit {
  explicit DeviceFit(Topology fitted) : topology(std::move(fitted)) {}

  // Its devices take `factor` times as long for all their work; above 1 they are slower than their figures said.
  Topology topology;
  double factor = 1;
  struct Throughput {
    std::string source;
    double measured = 0, before = 0, after = 0;  // per second; simulated by the figures before and after the fit
  };
  std::vector<Throughput> throughputs;
  std::vector<std::string> contradictions{};  // throughputs that are too high for the device's peak figures
  std::vector<std::string> notes{};           // what makes the fit doubtful
};

// Simulates each workload on one device, and multiplies the times of all devices of that kind by one factor: rates and
// bandwidth are divided by it, overheads of ops multiplied. Several measurements give the geometric mean of their
// factors. Computes on GPUs where the topology has any, else on CPUs. Throws InputError for a throughput that no speed
// of the device gives.
DeviceFit fit_device(const Topology& topology, const std::vector<MeasuredThroughput>& measured);

// Simulates what was measured on a topology and returns units per second.
using SimulatedThroughput = std::function<double(const Topology&)>;
// Returns the factor by which all devices of that kind have to be slower for a simulation to give `per_second`. Throws
// InputError as fit_device() does, whose message names the place in `file`.
double slowness_of_devices(const Topology& topology, const SimulatedThroughput& simulated, double per_second,
                           const std::string& file, const FilePlace& place);

}  // namespace tandem
