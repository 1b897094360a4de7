// The program of a calibration. It uses only the engine contract, on all compute devices of a worker at the same time.
//
// The records of ops are found again by their labels, those of copies by the number of a step; Findings has what only
// the issuing side knows.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/plan.h"

namespace tandem::calibration {

// From one device to another: indices of Worker::devices(), or kHost for the host's CPU:0.
inline constexpr int kHost = -1;
struct Route {
  int from = kHost;
  int to = kHost;
};

// The step of copies inside a physical device; copies along routes[i] have step i + 1.
inline constexpr int kLocalCopies = 0;

// What one run measures besides overheads.
struct Parts {
  bool work = false;               // matrix products, element-wise ops, copies inside a device
  bool concurrent_copies = false;  // how much copies and work slow each other down
  std::vector<Route> routes{};     // copies along these routes, one route at a time
  bool collectives = false;
};

struct Findings {
  std::vector<double> launch_s;                    // to issue one op, while each device has a task that issues
  std::vector<Nanoseconds> synchronize_return_ns;  // clock when synchronize() returned, one per kSynchronizeLabel op
  std::vector<GemmShape> gemms;
  double overlap =
      0;  // of copies and work: 1 if both together take as long as the longer one, 0 if as long as their sum
};

// Returns the number of physical devices of a type; logical device i is on place i mod places.
int places_of(const Capabilities& capabilities, DeviceType type);

// Runs the program. Calls `stage` with the name of each stage that begins.
void run_program(Worker& worker, const Plan& plan, const Parts& parts, Findings& findings,
                 const std::function<void(std::string_view stage)>& stage);

}  // namespace tandem::calibration
