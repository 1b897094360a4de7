// Makes the topology of a measured machine: one worker, its physical devices, and the links between them.
#pragma once

#include <string>
#include <vector>

#include "scenarios/calibration/figures.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// The measurements of one type of device. For each number of devices on one physical device, one run has `parts.work`.
struct DeviceMeasurements {
  DeviceType type = DeviceType::cpu;
  int places = 1;  // physical devices that took part
  std::vector<Measurement> runs{};
};

std::string today();  // ISO, UTC

struct MeasuredMachine {
  std::string name;
  std::string date;            // ISO
  DeviceMeasurements host;     // the CPU devices
  DeviceMeasurements devices;  // the GPUs; without runs if only CPUs are measured
};

// Makes the topology. Every figure has the provenance `measured` and says how it was measured.
Topology topology_of(const MeasuredMachine& machine);

DeviceModel model_of(const DeviceMeasurements& measurements, const std::string& date);

}  // namespace tandem::calibration
