// What a run needs of the machine that it runs on, estimated before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/scenario.h"

namespace tandem {

// The size of a simulation.
struct RunSize {
  std::int64_t devices = 0;    // of the job
  std::int64_t simulated = 0;  // those of workers that no other worker represents
  double records = 0;          // of these, of all steps

  double bytes() const;
  double addresses() const;  // bytes of address space, most of which are never touched: stacks of tasks
};

// `records_of_a_step`: that a device leaves. `symmetry`: whether workers may represent others.
RunSize size_of(const Scenario& scenario, double records_of_a_step, bool symmetry);

// What is wrong with a run where so many bytes or threads are available; empty: nothing. For an engine that models
// machines, and for one that is this machine, on which every device has a thread. `device_bytes`: what the workload
// needs on a device that computes in this machine's memory, as far as it is known.
std::string size_problem(const RunSize& size, double available_bytes);
std::string address_problem(const RunSize& size, double available_addresses);
std::string host_size_problem(std::int64_t devices, double device_bytes, double available_bytes);
std::string thread_problem(std::int64_t devices, std::int64_t available_threads);

// Memory that the system and the limits of this process's group still have to give, and how many threads they allow;
// empty where nobody says.
std::optional<double> available_memory_bytes();
std::optional<std::int64_t> available_threads();
// What `ulimit -v` leaves of this process's address space; empty: it has no limit.
std::optional<double> available_addresses();

}  // namespace tandem
