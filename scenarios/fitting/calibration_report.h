// The result of a calibration from measurements, as text for people and as JSON (docs/calibration.md lists every
// field).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/collective_calibration.h"
#include "scenarios/fitting/device_fit.h"

namespace tandem {

struct CalibrationReport {
  CollectiveCalibration collectives;
  std::optional<DeviceFit> device;
  std::vector<std::string> disturbances;  // Measurements::disturbances

  // Those of the device and of the collectives.
  std::vector<std::string> contradictions() const;
  std::vector<std::string> notes() const;
};

std::string calibration_text(const CalibrationReport& report);
nlohmann::ordered_json calibration_to_json(const CalibrationReport& report);

}  // namespace tandem
