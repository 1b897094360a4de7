// The GPUs and libraries that decide the times of the cuda engine, for Capabilities and Timeline::settings.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/nvml.h"
#include "engine/engine.h"

namespace tandem::cuda {

using Settings = std::map<std::string, std::string>;

// Returns the processor, then the GPUs in their order.
std::vector<Hardware> machine_hardware(int gpus);

// Returns names, capabilities and maximum clocks of the GPUs, the versions of driver and libraries, and the environment
// variables that these read. `nvml` may be null.
Settings describe_machine(int gpus, const Nvml* nvml);

// Returns the PCI bus ids by which NVML finds the GPUs.
std::vector<std::string> bus_ids(int gpus);
// Adds the clocks of the GPUs as "gpu_clocks", where they are known.
void add_clocks(const std::vector<std::string>& texts, Settings& settings);

// Returns the file of the loaded library whose name begins with `start`, "" if there is none.
std::string loaded_file(std::string_view start);

// "13.0" from 13000 and "2.28.9" from 22809, as CUDA and NCCL number themselves.
std::string cuda_version(int version);
std::string nccl_version(int version);

}  // namespace tandem::cuda
