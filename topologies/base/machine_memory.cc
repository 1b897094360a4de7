#include "topologies/base/machine_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "topologies/base/units.h"

namespace tandem {
namespace {

// Returns the number after a word in a file, such as "MemAvailable:" in /proc/meminfo.
std::optional<double> number_after(const std::string& file, std::string_view word) {
  std::ifstream in(file);
  std::string found;
  double number = 0;
  while (in >> found) {
    if (found == word && in >> number) return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> number_in(const char* file) {
  std::ifstream in(file);
  double number = 0;
  if (in >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

std::optional<double> available_memory_bytes() {
  return available_memory_bytes("/proc/meminfo", "/sys/fs/cgroup");
}

// What a group uses includes the files that it has read; the system gives back those that were not used for long.
std::optional<double> available_memory_bytes(const std::string& meminfo, const std::string& group) {
  constexpr double kKib = 1024;
  std::optional<double> available = number_after(meminfo, "MemAvailable:");
  if (available) *available *= kKib;
  const auto limit = number_in((group + "/memory.max").c_str()), used = number_in((group + "/memory.current").c_str());
  if (!limit || !used) return available;
  const double kept = std::max(0.0, *used - number_after(group + "/memory.stat", "inactive_file").value_or(0));
  return std::min(available.value_or(*limit), std::max(0.0, *limit - kept));
}

std::optional<double> available_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const double used = number_in("/proc/self/statm").value_or(0) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - used);
}

void check_memory(const std::string& input, double bytes, const std::string& less) {
  const double available = std::min(available_memory_bytes().value_or(bytes), available_addresses().value_or(bytes));
  if (bytes <= available) return;
  throw SizeError(fmt::format("{} needs about {} of this machine's memory; {} is available ({})", input,
                              format_quantity(bytes, Dimension::bytes), format_quantity(available, Dimension::bytes),
                              less));
}

// Resident memory of `tandem run` and `tandem topology` (/usr/bin/time), 2026-11-25: a model of 200,000 layers in 9 MB
// of YAML took 790 MB, a graph of 120,000 links in 11 MB of GraphML 820 MB.
void check_memory_of_text(const std::string& file, std::size_t bytes) {
  constexpr double kBytesOfAByte = 90;
  constexpr std::size_t kMany = std::size_t{1} << 20;
  if (bytes < kMany) return;
  check_memory(file + ": a file of " + format_quantity(static_cast<double>(bytes), Dimension::bytes),
               kBytesOfAByte * static_cast<double>(bytes), "a smaller one needs less");
}

}  // namespace tandem
