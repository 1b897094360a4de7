// What a calibration's program measures, and what it finds.
//
// Records of ops are identified by their labels, those of copies by the number of a step. Findings has what only the
// issuing side knows.
#pragma once

#include <map>
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
// The step of records that begin when synchronize() has returned, one for each op with kSynchronizeLabel. They give
// that time on the clock of records, which need not be that of Worker::now().
inline constexpr int kSynchronizedStep = 1 << 20;
// The step of records that begin when an op with kWakingOpLabel is issued, one for each.
inline constexpr int kWakingStep = kSynchronizedStep + 1;

// What one run measures besides overheads.
struct Parts {
  bool work = false;               // matrix products, element-wise ops, copies inside a device
  bool concurrent_copies = false;  // how much copies and work slow each other down
  std::vector<Route> routes{};     // copies along these routes, one route at a time
  bool collectives = false;
  bool in_use = false;    // rates by the memory that is in use
  bool slowdown = false;  // how much collectives slow products down; each device is then a physical one
};

// The times that an op which does nothing takes without a record, by the host's clock.
struct TinyOp {
  double issue_s = 0;   // until the host has issued it
  double idle_s = 0;    // until it is done on an idle stream
  double queued_s = 0;  // that the device takes behind other work
};

struct Findings {
  std::vector<double> launch_s;         // times to issue one op, while each device has a task that issues ops
  std::vector<double> wake_call_s;      // times to issue one op to a stream that sleeps
  std::vector<double> input_element_s;  // times to take one element from a dataset
  std::vector<GemmShape> gemms;
  // How far copies from the host and products overlap: 1 if both together take as long as the longer one, 0 if they
  // take as long as their sum.
  double overlap = 0;
  std::vector<double> slowdowns;            // times of products during a collective, divided by those alone
  std::vector<TinyOp> unrecorded, graphed;  // runs without records: one by one, and as graphs
  std::map<DType, std::vector<TinyOp>> small_products{};  // likewise one by one, by type
};

}  // namespace tandem::calibration
