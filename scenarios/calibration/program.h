// The program of a calibration. It uses only the engine contract, on all compute devices of a worker at the same time.
//
// Records of ops are identified by their labels, those of copies by the number of a step. Findings has what only the
// issuing side knows.
#pragma once

#include <functional>
#include <map>
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

// Returns the number of physical devices of a type, its places. Logical device i is on place i mod places.
int places_of(const Capabilities& capabilities, DeviceType type);

// Runs the program. Calls `stage` with the name of each stage that begins.
void run_program(Worker& worker, const Plan& plan, const Parts& parts, Findings& findings,
                 const std::function<void(std::string_view stage)>& stage);

// Runs the program of a run without records, which measures what ops cost besides their work.
void run_unrecorded_program(Worker& worker, const Plan& plan, std::vector<TinyOp>& ops);
// Measures, in a run without records, what it costs the host to issue a matrix product of each of the plan's types.
void run_products_program(Worker& worker, const Plan& plan, std::map<DType, std::vector<TinyOp>>& products);

}  // namespace tandem::calibration
