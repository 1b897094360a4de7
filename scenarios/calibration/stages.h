// The stages of a calibration's program, see program.h. For the files of this folder.
#pragma once

#include <algorithm>

#include "scenarios/calibration/findings.h"
#include "scenarios/calibration/pool.h"

namespace tandem::calibration {

// Keeps a device busy with consecutive ops while something else is prepared.
class Blocker {
 public:
  // Measures one op, after the devices have worked for long enough to reach their usual clocks.
  Blocker(Worker& worker, const Plan& plan);
  void launch_for(std::size_t device, double seconds);
  void launch_one(std::size_t device, std::string_view label) { launch(device, label, kComputeStream, count_); }
  // Launches ops of an eighth of the usual length, some 0.1 ms on a processor.
  void launch_short(std::size_t device, std::string_view label, int stream, int ops) {
    for (int i = 0; i < ops; ++i) launch(device, label, stream, count_ / 8);
  }

 private:
  void launch(std::size_t device, std::string_view label, int stream, std::int64_t count);

  Worker& worker_;
  std::vector<Pool> pools_;
  std::int64_t count_ = 0;
  double one_s_ = 0;
};

void warm_up(Worker& worker, const Plan& plan);
void measure_overheads(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings);
void measure_products(Worker& worker, const Plan& plan, Findings& findings);
void measure_memory(Worker& worker, const Plan& plan);
void measure_kernels(Worker& worker, const Plan& plan);
void measure_in_use(Worker& worker, const Plan& plan);
void measure_input(Worker& worker, const Plan& plan, Findings& findings);
void measure_local_copies(Worker& worker, const Plan& plan);
void measure_overlap(Worker& worker, const Plan& plan, Findings& findings);
void measure_slowdown(Worker& worker, const Plan& plan, Findings& findings);
void measure_routes(Worker& worker, const Plan& plan, const std::vector<Route>& routes);
// The group may also have devices of other workers, which must then call it too.
void measure_collectives(Worker& worker, const Plan& plan, std::span<const DeviceId> group);
void measure_collectives(Worker& worker, const Plan& plan);  // on all devices of this worker

inline constexpr int kPerRound = 3;

inline void synchronize_all(Worker& worker) {
  for (Device* device : worker.devices()) device->synchronize();
}

inline std::int64_t largest(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

inline double seconds_between(Nanoseconds begin, Nanoseconds end) {
  return static_cast<double>(std::max<Nanoseconds>(1, end - begin)) * 1e-9;
}

}  // namespace tandem::calibration
