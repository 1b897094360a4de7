// The topology of a measured machine: one worker, its physical devices, and what is between them.
#pragma once

#include <string>
#include <vector>

#include "scenarios/calibration/figures.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// The measurements of one type of device. Those with `parts.work` are one for each number of devices on one place.
struct DeviceMeasurements {
  DeviceType type = DeviceType::cpu;
  int places = 1;  // physical devices that took part
  std::vector<Measurement> runs{};
};

struct MeasuredMachine {
  std::string name;
  std::string date;            // ISO
  DeviceMeasurements host;     // of cpu devices; of all there is where they are what is measured
  DeviceMeasurements devices;  // without runs: the machine has its CPUs only
};

// Every figure `measured`, with how it was measured.
Topology topology_of(const MeasuredMachine& machine);

DeviceModel model_of(const DeviceMeasurements& measurements, const std::string& date);

}  // namespace tandem::calibration
