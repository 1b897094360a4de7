// Estimates what a run needs of the machine that it runs on, before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/job/job.h"

namespace tandem {

// The size of a simulation.
struct RunSize {
  std::int64_t devices = 0;    // of the job
  std::int64_t simulated = 0;  // those that no other one represents
  double records = 0;          // that these leave in all steps
  double value_bytes = 0;      // of the simulated devices' tensors, as far as they are known; 0: they hold no values
  std::string less{};          // what needs less, for people; empty: what a scenario states

  double bytes() const;
  double addresses() const;  // bytes of address space, most of which are never touched: stacks of tasks
  double areas() const;      // of addresses, in the kernel's sense: stacks and the guards beside them
};

// What may represent others in a run: workers, and devices of each worker.
struct Representatives {
  bool workers = false, devices = false;
};

// Returns the size of a run in which a device leaves `records_of_a_step` records in a step.
RunSize size_of(const Job& job, double records_of_a_step, Representatives representatives);

double bytes_of_records(double records);

// Returns how many bytes of tensors a run keeps for a device whose values this machine computes, or 0 where they are
// not known. Layers that are not computed keep neither activations nor moments; a perceptron keeps at least its weights
// and their gradients.
double tensor_bytes_of_device(const Job& job);
// Returns the same for all parameter servers together: variables and, where updates are synchronous, the accumulators
// of gradients, each as large as its variable.
double tensor_bytes_of_servers(const Job& job);

// Return why a run does not fit into the memory, address space, areas or threads that are available, or an empty text
// if it does. The first three are for engines that model machines, the others for engines that run on this machine,
// where every device has a thread. `device_bytes` is what the workload needs on a device that computes in this
// machine's memory, as far as it is known; `less` says what needs less.
std::string size_problem(const RunSize& size, double available_bytes);
std::string address_problem(const RunSize& size, double available_addresses);
std::string area_problem(const RunSize& size, double available_areas);
std::string host_size_problem(std::int64_t devices, double device_bytes, double available_bytes,
                              const std::string& less = "fewer devices need less");
std::string thread_problem(std::int64_t devices, std::int64_t available_threads);

// Return the same for this machine as it is now, of whose memory a run may take a share. Every command asks before it
// simulates or measures.
std::string simulation_problem_here(const RunSize& size, double memory_share = 1);
std::string host_problem_here(std::int64_t devices, double device_bytes, double memory_share = 1,
                              const std::string& less = "fewer devices need less");

// Returns how many threads the system lets this process's user have; nothing where it is unknown.
std::optional<std::int64_t> available_threads();
// Returns how many areas of memory the system lets this process have (vm.max_map_count), less a few for libraries.
std::optional<double> available_areas();

}  // namespace tandem
