// What a calibration issues, through the engine contract alone, on all compute devices of a worker at once.
//
// Ops carry labels and copies the number of a step, by which their records are found again; what only the issuing side
// sees is in Findings.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/plan.h"

namespace tandem::calibration {

// Copies from one device to another, as indices of Worker::devices(), or the host's CPU:0.
inline constexpr int kHost = -1;
struct Route {
  int from = kHost;
  int to = kHost;
};

// Of copies inside a physical device; those of routes()[i] are of step i + 1.
inline constexpr int kLocalCopies = 0;

// What one run measures: overheads always.
struct Parts {
  bool work = false;               // matrix products, element-wise ops, copies inside a device
  bool concurrent_copies = false;  // whether copies and work hinder each other
  std::vector<Route> routes{};     // copies, one route at a time
  bool collectives = false;
};

struct Findings {
  std::vector<double> launch_s;                    // one op issued, by one of as many tasks as there are devices
  std::vector<Nanoseconds> synchronize_return_ns;  // clock when synchronize() returned, one per kSynchronizeLabel op
  std::vector<GemmShape> gemms;
  double overlap = 0;  // of copies with work: 1 when both together take as long as the longer, 0 as their sum
};

// How many physical devices of a type the machine has; logical device i is on place i mod places.
int places_of(const Capabilities& capabilities, DeviceType type);

// `stage` is told what begins.
void run_program(Worker& worker, const Plan& plan, const Parts& parts, Findings& findings,
                 const std::function<void(std::string_view stage)>& stage);

}  // namespace tandem::calibration
