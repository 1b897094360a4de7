#include "engine/cpu/processor.h"

#include <algorithm>
#include <fstream>

#include "engine/cpu/host_memory.h"
#include "engine/threads/waiter.h"

namespace tandem::cpu {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "processor";
}

}  // namespace

Hardware this_processor() {
  return {.type = DeviceType::cpu,
          .name = processor_name(),
          .cores = threads::available_cores(),
          .memory_bytes = static_cast<double>(physical_memory_bytes())};
}

}  // namespace tandem::cpu
