// What goes wrong in a run on purpose: devices and links that are slow for a while, times that vary, workers that are
// lost. Real engines do it to the machine, models of machines to their prediction.
//
// Dates are in seconds from the moment at which the first worker begins step 0 (Worker::begin_step), so that what a job
// sets up before takes no part. Steps are those of the worker that has the device; links follow worker 0.
//
// Threads: a Faults is const once an engine has it.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// While a fault lasts: from one date to another, or, where `first_step` is set, from the beginning of one step to the
// end of another.
struct FaultPeriod {
  double from_s = 0;
  double to_s = std::numeric_limits<double>::infinity();
  std::optional<int> first_step{};
  int last_step = std::numeric_limits<int>::max();

  bool contains(double date_s, int step) const {
    return first_step ? *first_step <= step && step <= last_step : from_s <= date_s && date_s < to_s;
  }
};

// Ops that begin meanwhile on these devices take `factor` (more than 0; on real engines at least 1) times as long.
struct SlowDevices {
  int worker = 0;
  std::optional<int> device{};  // the place among the worker's compute devices; empty: all of them
  double factor = 1;
  FaultPeriod when{};
};

// These links carry 1 / `factor` (more than 0) of the bytes per second meanwhile, in both directions.
struct SlowLinks {
  std::vector<LinkIndex> links{};  // of the topology
  double factor = 1;
  FaultPeriod when{};
};

// Times vary: each is multiplied by a number of its own, drawn from a lognormal distribution with mean 1 and this
// coefficient of variation. compute: ops; network: transfers between two nodes; input: what a host takes for a batch.
struct Jitter {
  enum class On : std::uint8_t { compute, network, input };
  On on = On::compute;
  double variation = 0;  // standard deviation / mean, greater than 0
  std::uint64_t seed = 1;
};

// A worker is gone from this date on, from the moment at which it would begin this step, or from one of the calls that
// give work to its devices or wait for it, and the run ends with lost_worker_error(). Where the run goes on without it
// (`ends_run` false), whoever uses its devices meanwhile gets that error: the calls that issue work there, or wait for
// it, throw. It comes back after some time, with the same memory; a step is then one of worker 0. See
// Worker::is_lost().
struct LostWorker {
  int worker = 0;
  double at_s = 0;
  std::optional<int> step{};           // instead of the date
  std::optional<std::int64_t> call{};  // instead of the date: it is gone before this call, from 0 in the whole run
  bool ends_run = true;
  double back_after_s = std::numeric_limits<double>::infinity();  // unless it ends the run

  bool has_date() const { return !step && !call; }
};

struct Faults {
  std::vector<SlowDevices> slow_devices{};
  std::vector<SlowLinks> slow_links{};
  std::vector<Jitter> jitter{};
  std::vector<LostWorker> lost_workers{};
  // Where workers are processes of their own: the run goes on without one whose process ends, for whatever reason,
  // unless it is the first worker, a chief or a parameter server. A LostWorker that does not end the run implies it.
  bool goes_on_without_lost = false;

  bool empty() const { return slow_devices.empty() && slow_links.empty() && jitter.empty() && lost_workers.empty(); }
  bool survives_losses() const;
};

// Returns how much longer an op takes that begins at this date, in this step of its worker: the product of the factors
// of what slows the device down then. `device`: its place among the worker's compute devices; empty: it is its host.
double slowdown_of(const Faults& faults, int worker, std::optional<int> device, double date_s, int step);

// Throws UsageError for what cannot be: a worker, device or link that is not there, a factor or variation that is not
// greater than 0, a period that ends before it begins, a call before the first one. `links`: how many the topology has;
// 0: there is none.
struct NamedWorker {
  std::string name{};  // "/job:worker/task:0"
  int devices = 0;
};
void check_faults(const Faults& faults, std::span<const NamedWorker> workers, std::size_t links);

// What a run ends with that has lost a worker: an UnavailableError that names it and the moment.
std::exception_ptr lost_worker_error(const LostWorker& lost, std::string_view name);

}  // namespace tandem
