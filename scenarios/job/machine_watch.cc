#include "scenarios/job/machine_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/launched_job.h"
#include "reports/base/statistics.h"

namespace tandem {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

// The first line of /proc/stat (proc(5)): ticks of all processors as user, nice, system, idle, iowait, irq, softirq and
// steal. The time of guests is already contained in user and nice.
bool read_processors(MachineCounts& counts) {
  std::ifstream file("/proc/stat");
  std::string label;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(file >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return false;
  const Nanoseconds tick = kSecond / sysconf(_SC_CLK_TCK);
  counts.busy = (user + nice + system + irq + softirq) * tick;
  counts.stolen = steal * tick;
  return true;
}

Nanoseconds nanoseconds_of(const timeval& time) {
  return time.tv_sec * kSecond + time.tv_usec * Nanoseconds{1000};
}

// Returns the time of the processes that the launcher has started on this machine, beside this one: they have the same
// parent. The fields of /proc/PID/stat after the name, which may hold anything, are state, parent, ..., and at the 14th
// and 15th place of the whole line the ticks in user and system mode (proc(5)).
Nanoseconds time_of_other_ranks() {
  if (count_variable_of_process().empty()) return 0;
  const Nanoseconds tick = kSecond / sysconf(_SC_CLK_TCK);
  Nanoseconds time = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string id = entry.path().filename().string();
    if (id.find_first_not_of("0123456789") != std::string::npos || id == std::to_string(getpid())) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line) || line.rfind(')') == std::string::npos) continue;  // it may end meanwhile
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string state, skipped;
    pid_t parent = 0;
    std::int64_t user = 0, system = 0;
    fields >> state >> parent;
    constexpr int kBetween = 9;
    for (int i = 0; i < kBetween; ++i) fields >> skipped;
    if (fields >> user >> system && parent == getppid()) time += (user + system) * tick;
  }
  return time;
}

// The second number of a thread's schedstat is how long it was ready and did not run.
bool read_threads(MachineCounts& counts) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(entry.path() / "schedstat");
    Nanoseconds ran = 0, waited = 0;
    // A thread may end meanwhile.
    if (file >> ran >> waited) counts.waited[std::stoi(entry.path().filename().string())] = waited;
  }
  return !error && !counts.waited.empty();
}

// What the driver of each processor says in kHz. A virtual machine has no such driver; its processors' nominal
// frequency is in /proc/cpuinfo.
double read_frequency(int cores) {
  std::vector<double> frequencies;
  for (int core = 0; core < cores; ++core) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq");
    if (double kilohertz = 0; file >> kilohertz) frequencies.push_back(kilohertz * 1e3);
  }
  if (!frequencies.empty()) return median_of(std::move(frequencies));
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    std::istringstream value(line.substr(line.find(':') + 1));
    if (double megahertz = 0; value >> megahertz) frequencies.push_back(megahertz * 1e6);
  }
  return frequencies.empty() ? 0 : median_of(std::move(frequencies));
}

}  // namespace

std::optional<MachineCounts> machine_counts() {
  MachineCounts counts;
  counts.time = std::chrono::steady_clock::now();
  counts.cores = static_cast<int>(std::thread::hardware_concurrency());
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0 || !read_processors(counts) || !read_threads(counts)) return std::nullopt;
  counts.own = nanoseconds_of(usage.ru_utime) + nanoseconds_of(usage.ru_stime);
  counts.launch = time_of_other_ranks();
  counts.involuntary_switches = usage.ru_nivcsw;
  counts.frequency_hz = read_frequency(counts.cores);
  return counts;
}

int online_processors() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

MachineUse use_between(const MachineCounts& begin, const MachineCounts& end) {
  MachineUse use{.cores = end.cores};
  use.time = std::chrono::duration_cast<std::chrono::nanoseconds>(end.time - begin.time).count();
  use.own = end.own - begin.own;
  use.others = std::max<Nanoseconds>(0, end.busy - begin.busy - use.own - (end.launch - begin.launch));
  use.stolen = end.stolen - begin.stolen;
  use.involuntary_switches = end.involuntary_switches - begin.involuntary_switches;
  use.frequency_hz = {begin.frequency_hz, end.frequency_hz};
  for (const auto& [thread, waited] : end.waited) {
    const auto before = begin.waited.find(thread);
    use.waited += waited - (before == begin.waited.end() ? 0 : before->second);
  }
  return use;
}

void add_use(std::vector<GpuUse>& uses, const GpuUse& use) {
  const auto known = std::find_if(uses.begin(), uses.end(), [&](const GpuUse& one) { return one.gpu == use.gpu; });
  if (known == uses.end()) return uses.push_back(use);
  const int readings = known->readings + use.readings;
  if (readings > 0) {
    known->others_share = (known->others_share * known->readings + use.others_share * use.readings) / readings;
  }
  known->readings = readings;
  known->slowed += use.slowed;
  known->power_limited += use.power_limited;
  known->other_programs = std::max(known->other_programs, use.other_programs);
  for (const std::string& reason : use.slowed_by) {
    if (std::find(known->slowed_by.begin(), known->slowed_by.end(), reason) == known->slowed_by.end()) {
      known->slowed_by.push_back(reason);
    }
  }
}

std::optional<MachineUse> measure_undisturbed(int tries,
                                              const std::function<void(std::vector<GpuUse>& gpus)>& measure) {
  std::optional<MachineUse> use;
  for (int attempt = 0; attempt < tries && (attempt == 0 || (use && use->is_disturbed())); ++attempt) {
    const std::optional<MachineCounts> begin = machine_counts();
    std::vector<GpuUse> gpus;
    measure(gpus);
    const std::optional<MachineCounts> end = machine_counts();
    use.reset();
    if (!begin || !end) continue;
    use = use_between(*begin, *end);
    use->waited = use->others;
    for (const GpuUse& one : gpus) add_use(use->gpus, one);
  }
  return use;
}

}  // namespace tandem
